//! Callers that wait: whatever makes room in their process wakes them.

use std::collections::BTreeMap;

use super::keys::{Tally, tally};
use super::violation::Violation;
use crate::history::{Answer, Deed, Entry, Event};
use crate::workload::{Action, CallPlan, Scenario};

const WOKEN: &str = "a call that waits is woken by room that its process makes";

/// How long a caller that was woken may take to ask: less than until it looks by itself.
const ROOM_US: u64 = 1_000_000;

/// What is known so far.
#[derive(Default)]
struct Waits<'h> {
    begun: BTreeMap<usize, (&'h CallPlan, u64)>,
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
            Event::Dropped { call } => waits.forget(*call),
            Event::Killed { .. } => waits = Waits::default(),
            _ => {}
        }
    }
    Ok(())
}

impl Waits<'_> {
    fn forget(&mut self, call: usize) {
        self.begun.remove(&call);
        self.woken.remove(&call);
    }

    fn answer(&mut self, scenario: &Scenario, call: usize, answer: Answer, us: u64) {
        let ended = self.begun.remove(&call);
        self.woken.remove(&call);
        let Some((reset, reset_us)) = ended.filter(|(plan, _)| plan.action == Action::Reset) else { return };
        // A limit that is closed denies without asking.
        let is_closed = |call: &CallPlan| call.policy == reset.policy && matches!(call.action, Action::Close(_));
        if answer != Answer::Done || scenario.calls.iter().any(is_closed) {
            return;
        }
        let is_woken = |(plan, began_us): (&CallPlan, u64)| {
            let is_of_it = (plan.process, plan.policy, plan.subject) == (reset.process, reset.policy, reset.subject);
            is_of_it && matches!(plan.action, Action::Wait(_)) && began_us + ROOM_US < reset_us
        };
        let woken = self.begun.iter().filter(|(_, begun)| is_woken(**begun));
        self.woken.extend(woken.map(|(call, _)| (*call, (reset_us, us + ROOM_US))));
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
        let how = format!("call {call} was waiting while its subject was reset from {since_us} on, and did not ask");
        Err(Violation { us, promise: WOKEN, how })
    }
}
