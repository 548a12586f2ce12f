//! Callers that wait: whatever makes room in their process wakes them.

use std::collections::BTreeMap;

use tallygate::DecidedBy;

use super::keys::{Tally, tally};
use super::violation::Violation;
use crate::history::{Answer, Deed, Entry, Event};
use crate::workload::{Action, CallPlan, PolicyPlan, Scenario};

const WOKEN: &str = "a call that waits is woken by room that its process makes";

/// How long a caller may take until it sleeps.
const BEGIN_US: u64 = 1_000_000;

/// How long a caller that was woken may take to ask: less than until it looks by itself.
const ROOM_US: u64 = 250_000;

/// What is known so far.
#[derive(Default)]
struct Waits<'h> {
    begun: BTreeMap<usize, (&'h CallPlan, u64)>,
    /// The calls that are to be refunded or settled.
    admitted: BTreeMap<usize, &'h CallPlan>,
    /// When a server was last asked about a tally.
    asked: BTreeMap<Tally, u64>,
    /// The callers that were to be woken: since when a server is to be asked, and by when.
    woken: BTreeMap<usize, (u64, u64)>,
}

pub(super) fn check(scenario: &Scenario, history: &[Entry]) -> Result<(), Violation> {
    if !scenario.is_calm() {
        return Ok(());
    }
    let mut waits = Waits::default();
    for entry in history {
        waits.check_woken(entry.us)?;
        match &entry.event {
            Event::Called { call, plan, .. } => _ = waits.begun.insert(*call, (plan, entry.us)),
            Event::Done { deed: Deed::Decided { keys, .. }, .. } => {
                let tallies = keys.iter().filter_map(|key| tally(scenario, key));
                waits.asked.extend(tallies.map(|tally| (tally, entry.us)));
            }
            Event::Answered { call, answer, .. } => waits.answer(scenario, *call, *answer, entry.us),
            Event::Ended { call } => waits.end(scenario, *call, entry.us),
            Event::Dropped { call } => _ = waits.forget(*call),
            Event::Killed { .. } => waits = Waits::default(),
            _ => {}
        }
    }
    Ok(())
}

impl<'h> Waits<'h> {
    fn forget(&mut self, call: usize) -> Option<(&'h CallPlan, u64)> {
        self.woken.remove(&call);
        self.begun.remove(&call)
    }

    fn answer(&mut self, scenario: &Scenario, call: usize, answer: Answer, us: u64) {
        let Some((plan, began_us)) = self.forget(call) else { return };
        match answer {
            Answer::Done if plan.action == Action::Reset => self.wake(scenario, plan, began_us, us),
            Answer::Admitted(DecidedBy::Backend) if gives_back(scenario, plan) => _ = self.admitted.insert(call, plan),
            _ => {}
        }
    }

    /// By now, the call is refunded or settled.
    fn end(&mut self, scenario: &Scenario, call: usize, us: u64) {
        // A ban goes on, and what was taken ahead is given out without asking.
        let asks = |policy: &PolicyPlan| policy.ban.is_none() && policy.prefetch_us.is_none();
        if let Some(plan) = self.admitted.remove(&call)
            && scenario.policies.get(plan.policy).is_some_and(asks)
        {
            self.wake(scenario, plan, us, us);
        }
    }

    /// A call has made room from a time on, and is done.
    fn wake(&mut self, scenario: &Scenario, by: &CallPlan, since_us: u64, us: u64) {
        // A limit that is closed denies without asking.
        let is_closed = |call: &CallPlan| call.policy == by.policy && call.is_closing();
        // A caller that waits for the end of a pause has no use for room.
        let is_pausable = scenario.policies.get(by.policy).is_some_and(|policy| policy.partner.is_some());
        if is_pausable || scenario.calls.iter().any(is_closed) {
            return;
        }
        for (call, (plan, began_us)) in &self.begun {
            let is_of_it = (plan.process, plan.policy, plan.subject) == (by.process, by.policy, by.subject);
            if is_of_it && matches!(plan.action, Action::Wait(_)) && began_us + BEGIN_US < since_us {
                self.woken.entry(*call).or_insert((since_us, us + ROOM_US));
            }
        }
    }

    fn check_woken(&mut self, now_us: u64) -> Result<(), Violation> {
        let late = self.woken.iter().find(|(_, (_, until_us))| *until_us < now_us);
        let Some((&call, &(since_us, us))) = late else { return Ok(()) };
        self.woken.remove(&call);
        let plan = self.begun.get(&call).map(|(plan, _)| (plan.policy, plan.subject));
        let asked_us = plan.and_then(|tally| self.asked.get(&tally)).copied().unwrap_or_default();
        if asked_us >= since_us {
            return Ok(());
        }
        let how = format!("call {call} was waiting when its process made room, from {since_us} on, and did not ask");
        Err(Violation { us, promise: WOKEN, how })
    }
}

/// Whether a call counts less in the end than when it was admitted.
fn gives_back(scenario: &Scenario, plan: &CallPlan) -> bool {
    let Some(policy) = scenario.policies.get(plan.policy) else { return false };
    policy.groups.iter().any(|group| plan.used_of(group.unit) < plan.cost_of(group.unit))
}
