//! The servers of a world, on the net.

mod arrangement;
mod cluster;
mod node;
mod plant;
mod replication;
mod sentinel;
mod shard;
mod single;
mod slot_move;
mod slot_table;

use std::rc::Rc;

use self::arrangement::Arrangement;
use self::cluster::Masters;
pub use self::node::Node;
pub use self::plant::Plant;
use self::sentinel::Sentinel;
use self::single::Single;
use crate::engine;
use crate::history::History;
use crate::net::{self, Party};
use crate::workload::{Fault, FaultPlan, Handover, Scenario, Topology};

/// How long a server is gone at least for others to take its place.
const GONE_US: u64 = 2_000_000;

/// The servers of a world.
pub struct Servers {
    arrangement: Rc<dyn Arrangement>,
}

impl Servers {
    /// Starts the servers of a scenario.
    #[must_use]
    pub fn start(scenario: &Scenario, plant: &Plant, history: &History) -> Rc<Self> {
        let arrangement: Rc<dyn Arrangement> = match scenario.topology {
            Topology::Server => Rc::new(Single::start(plant, history)),
            Topology::Sentinel => Sentinel::start(scenario.seed, plant, history),
            Topology::Cluster => Masters::start(scenario.seed, plant, history),
        };
        Rc::new(Self { arrangement })
    }

    /// What limiters connect to.
    #[must_use]
    pub fn url(&self) -> String {
        self.arrangement.url()
    }

    /// The servers as parties of the net.
    #[must_use]
    pub fn parties(&self) -> Vec<Party> {
        self.arrangement.nodes().iter().map(|node| node.party()).collect()
    }

    /// Lets a fault of a server happen.
    pub fn begin(self: &Rc<Self>, plan: &FaultPlan) {
        let Some(node) = self.arrangement.node(plan.at) else { return };
        match plan.fault {
            Fault::Hang => {
                node.hang();
                self.end_after(plan.for_us, move || node.resume());
            }
            Fault::Crash { lost_us, is_quiet, loading_us } => {
                self.crash(&node, is_quiet, plan.for_us, (lost_us, loading_us));
            }
            Fault::ClockStep(us) => {
                node.step_clock(us);
                self.arrangement.lose(&node, &format!("the clock of server {} was set", node.number()));
            }
            Fault::Full => {
                node.change_faults(|faults| faults.is_full = true);
                self.end_after(plan.for_us, move || node.change_faults(|faults| faults.is_full = false));
            }
            Fault::Unsaved => {
                node.change_faults(|faults| faults.cannot_save = true);
                self.end_after(plan.for_us, move || node.change_faults(|faults| faults.cannot_save = false));
            }
            Fault::Flush => node.flush_scripts(),
            Fault::Isolated => self.isolate(&node, plan.for_us),
            Fault::Failover(Handover::Gone) => self.crash(&node, false, plan.for_us.max(GONE_US), (0, 0)),
            Fault::Move => self.arrangement.move_slot(&node),
            Fault::Forged(bytes) => self.forge(&node, bytes, plan.for_us),
            Fault::Failover(handover) => self.arrangement.hand_over(&node, handover),
            _ => {}
        }
        self.arrangement.changed();
    }

    fn end_after(self: &Rc<Self>, us: u64, end: impl FnOnce() + 'static) {
        let servers = Rc::clone(self);
        engine::after(us, move || {
            end();
            servers.arrangement.changed();
        });
    }

    fn crash(self: &Rc<Self>, node: &Rc<Node>, is_quiet: bool, for_us: u64, (lost_us, loading_us): (u64, u64)) {
        if node.crash(is_quiet) {
            let (servers, node) = (Rc::clone(self), Rc::clone(node));
            self.end_after(for_us, move || servers.restart(&node, lost_us, loading_us));
        }
    }

    fn restart(&self, node: &Rc<Node>, lost_us: u64, loading_us: u64) {
        if node.restart(lost_us) {
            self.arrangement.lose(node, &format!("server {} has restarted", node.number()));
            self.arrangement.empty(node);
        }
        if loading_us > 0 {
            node.change_faults(|faults| faults.is_loading = true);
            let node = Rc::clone(node);
            engine::after(loading_us, move || node.change_faults(|faults| faults.is_loading = false));
        }
    }

    /// Makes the tallies of a server something else, until they are removed.
    fn forge(self: &Rc<Self>, node: &Rc<Node>, bytes: [u8; 3], for_us: u64) {
        self.arrangement.lose(node, &format!("something else has written to server {}", node.number()));
        let keys = node.forge(bytes, for_us);
        let (servers, node) = (Rc::clone(self), Rc::clone(node));
        self.end_after(for_us, move || {
            node.remove(&keys);
            servers.arrangement.lose(&node, &format!("what was forged on server {} is removed", node.number()));
        });
    }

    /// Lets nothing pass between a server and the others.
    fn isolate(self: &Rc<Self>, node: &Rc<Node>, for_us: u64) {
        let others = self.parties().into_iter().filter(|party| *party != node.party());
        let pairs: Vec<_> = others.map(|other| (node.party(), other)).collect();
        set_silent(&pairs, true);
        self.end_after(for_us, move || set_silent(&pairs, false));
    }

    /// Ends all faults.
    pub fn heal(&self) {
        let parties = self.parties();
        let pairs = parties.iter().flat_map(|one| parties.iter().map(move |other| (*one, *other)));
        set_silent(&pairs.filter(|(one, other)| one < other).collect::<Vec<_>>(), false);
        self.arrangement.nodes().iter().for_each(|node| node.resume());
        self.arrangement.changed();
    }

    /// The tallies that servers still have.
    #[must_use]
    pub fn tallies(&self) -> Vec<String> {
        let nodes = self.arrangement.nodes();
        nodes.iter().flat_map(|node| node.keys()).filter(|key| !key.contains(":!")).collect()
    }
}

fn set_silent(pairs: &[(Party, Party)], is_silent: bool) {
    for &(one, other) in pairs {
        net::change_link(one, other, |link| link.is_silent = is_silent);
    }
}
