//! Plays a scenario: starts the servers and the processes, lets calls and faults happen, and looks at what is left.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::call::perform;
use super::process::{Running, party_number};
use crate::engine;
use crate::fleet::Member;
use crate::history::{Event, History};
use crate::net::{self, Link, Party};
use crate::partner::Partners;
use crate::topology::{Plant, Servers};
use crate::workload::{Action, Fault, FaultPlan, Scenario};

/// How long a process takes to start again after it has ended by itself.
const STARTING_US: u64 = 1_000_000;

/// A world while it is played.
pub(super) struct World {
    pub(super) scenario: Scenario,
    pub(super) servers: Rc<Servers>,
    pub(super) history: History,
    partners: Arc<Partners>,
    processes: RefCell<Vec<Running>>,
}

impl World {
    /// Plays a scenario up to its last call.
    pub(super) async fn play(scenario: &Scenario, plant: &Plant, history: &History) -> Rc<Self> {
        net::begin(scenario.seed, scenario.link.clone());
        let servers = Servers::start(scenario, plant, history);
        let partners = scenario.policies.iter().map(|policy| policy.partner.clone()).collect();
        let world = Rc::new(Self {
            scenario: scenario.clone(),
            servers,
            history: history.clone(),
            partners: Arc::new(Partners::new(scenario.seed, partners)),
            processes: RefCell::default(),
        });
        for number in 0..scenario.processes.len() {
            let running = world.start_process(number);
            world.processes.borrow_mut().push(running);
        }
        for plan in &scenario.faults {
            let (world, plan) = (Rc::clone(&world), plan.clone());
            engine::at(plan.us, move || world.begin(&plan));
        }
        world.call_all().await;
        world
    }

    pub(super) fn processes(&self) -> Vec<Running> {
        self.processes.borrow().clone()
    }

    fn start_process(&self, number: usize) -> Running {
        Running::start(number, &self.scenario, self.servers.url())
    }

    async fn call_all(self: &Rc<Self>) {
        for (number, plan) in self.scenario.calls.iter().enumerate() {
            engine::sleep_until(plan.us).await;
            let Some(running) = self.processes.borrow().get(plan.process).cloned() else { continue };
            if !running.member.is_alive() {
                continue;
            }
            if let Action::Stop(us) = plan.action {
                self.replace_later(plan.process, Arc::clone(&running.member), us + STARTING_US);
            }
            let (history, partners) = (self.history.clone(), Arc::clone(&self.partners));
            let member = Arc::clone(&running.member);
            let call = perform(number, plan.clone(), running, partners, history);
            member.spawn(call);
        }
    }

    /// Starts a process again after so many microseconds, or when it has ended. Another fault may have started it before.
    fn replace_later(self: &Rc<Self>, at: usize, ended: Arc<Member>, us: u64) {
        let world = Rc::clone(self);
        engine::after(us, move || {
            if !world.processes.borrow().get(at).is_some_and(|running| Arc::ptr_eq(&running.member, &ended)) {
                return;
            }
            if ended.is_alive() {
                world.replace_later(at, ended, STARTING_US);
                return;
            }
            let started = world.start_process(at);
            if let Some(place) = world.processes.borrow_mut().get_mut(at) {
                *place = started;
            }
        });
    }

    fn begin(self: &Rc<Self>, plan: &FaultPlan) {
        self.history.note(Event::Fault { what: plan.to_string() });
        if plan.fault.is_of_process() {
            self.begin_at_process(plan);
        } else {
            self.servers.begin(plan);
        }
    }

    fn begin_at_process(self: &Rc<Self>, plan: &FaultPlan) {
        let party = Party::Process(party_number(plan.at));
        let Some(running) = self.processes.borrow().get(plan.at).cloned() else { return };
        let at = plan.at;
        match plan.fault {
            // It is started again as it was killed first.
            Fault::Kill if !running.member.is_alive() => {}
            Fault::Kill => {
                running.member.kill();
                self.history.note(Event::Killed { process: at });
                self.replace_later(at, running.member, plan.for_us);
            }
            Fault::Pause => {
                running.member.pause();
                engine::after(plan.for_us, move || running.member.resume());
            }
            Fault::Hangup => net::cut(party),
            fault => {
                for server in self.servers.parties() {
                    let before = net::link(party, server);
                    net::change_link(party, server, |link| match fault {
                        Fault::Silent => link.is_silent = true,
                        Fault::Unreachable => link.is_unreachable = true,
                        Fault::Cut { requests, replies } => (link.cut_requests, link.cut_replies) = (requests, replies),
                        Fault::Slow(us) => link.delay_us += us,
                        _ => {}
                    });
                    engine::after(plan.for_us, move || net::change_link(party, server, |link| *link = before));
                }
            }
        }
    }

    /// Ends all faults of links and processes.
    pub(super) fn heal(&self) {
        for (number, running) in self.processes().iter().enumerate() {
            running.member.resume();
            for server in self.servers.parties() {
                let healed = Link { loss: 0.0, ..self.scenario.link.clone() };
                net::change_link(Party::Process(party_number(number)), server, |link| *link = healed);
            }
        }
    }
}
