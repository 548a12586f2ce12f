//! The servers of a world, on the net.

mod node;
mod plant;

use std::rc::Rc;

pub use self::node::Node;
pub use self::plant::Plant;
use crate::engine;
use crate::history::{Event, History};
use crate::net::Party;
use crate::workload::{Fault, FaultPlan, Scenario};

/// The servers of a world.
pub struct Servers {
    nodes: Vec<Rc<Node>>,
    history: History,
}

impl Servers {
    /// Starts the servers of a scenario.
    #[must_use]
    pub fn start(_scenario: &Scenario, plant: &Plant, history: &History) -> Rc<Self> {
        let nodes = Node::start(0, plant, history).into_iter().collect();
        Rc::new(Self { nodes, history: history.clone() })
    }

    /// What limiters connect to.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}:{}", node::host(0), node::PORT)
    }

    /// The servers as parties of the net.
    #[must_use]
    pub fn parties(&self) -> Vec<Party> {
        self.nodes.iter().map(|node| node.party()).collect()
    }

    /// Lets a fault of a server happen.
    pub fn begin(self: &Rc<Self>, plan: &FaultPlan) {
        let Some(node) = self.nodes.get(plan.at).map(Rc::clone) else { return };
        match plan.fault {
            Fault::Hang => {
                node.hang();
                engine::after(plan.for_us, move || node.resume());
            }
            Fault::Crash { lost_us, is_quiet, loading_us } => {
                if !node.crash(is_quiet) {
                    return;
                }
                let servers = Rc::clone(self);
                engine::after(plan.for_us, move || servers.restart(&node, lost_us, loading_us));
            }
            Fault::ClockStep(us) => {
                node.step_clock(us);
                self.history.note(Event::Lost { how: format!("the clock of server {} was set", node.number()) });
            }
            Fault::Full => {
                node.change_faults(|faults| faults.is_full = true);
                engine::after(plan.for_us, move || node.change_faults(|faults| faults.is_full = false));
            }
            Fault::Unsaved => {
                node.change_faults(|faults| faults.cannot_save = true);
                engine::after(plan.for_us, move || node.change_faults(|faults| faults.cannot_save = false));
            }
            Fault::Flush => node.flush_scripts(),
            _ => {}
        }
    }

    fn restart(&self, node: &Rc<Node>, lost_us: u64, loading_us: u64) {
        if node.restart(lost_us) {
            self.history.note(Event::Lost { how: format!("server {} has restarted", node.number()) });
        }
        if loading_us > 0 {
            node.change_faults(|faults| faults.is_loading = true);
            let node = Rc::clone(node);
            engine::after(loading_us, move || node.change_faults(|faults| faults.is_loading = false));
        }
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.nodes.iter().for_each(|node| node.resume());
    }

    /// The tallies that servers still have.
    #[must_use]
    pub fn tallies(&self) -> Vec<String> {
        self.nodes.iter().flat_map(|node| node.keys()).filter(|key| !key.contains(":!")).collect()
    }
}
