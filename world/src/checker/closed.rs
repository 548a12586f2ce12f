//! Overrides that close a limit: every process adopts them in time.

use std::collections::BTreeMap;

use tallygate::DecidedBy;

use super::violation::Violation;
use crate::history::{Answer, Entry, Event};
use crate::workload::{Action, CallPlan, Scenario};

const CLOSED: &str = "every process adopts an override within two seconds";

/// Two seconds, and as long as the call and the reading may take.
const ADOPTED_US: u64 = 4_000_000;

/// When the limit of a policy is closed.
#[derive(Clone, Copy)]
struct Closed {
    from_us: u64,
    until_us: u64,
    /// The unit that is closed; `None` for all calls.
    unit: Option<&'static str>,
}

impl Closed {
    fn denies(&self, plan: &CallPlan) -> bool {
        self.unit.is_none_or(|unit| plan.units.of(unit) != Some(0))
    }
}

pub(super) fn check(scenario: &Scenario, history: &[Entry]) -> Result<(), Violation> {
    if !scenario.is_calm() {
        return Ok(());
    }
    let mut begun: BTreeMap<usize, (&CallPlan, u64)> = BTreeMap::new();
    let mut closed: BTreeMap<usize, Closed> = BTreeMap::new();
    for entry in history {
        match &entry.event {
            Event::Called { call, plan, .. } => {
                begun.insert(*call, (plan, entry.us));
                // It replaces the one that there is.
                if let Some(before) = closed.get_mut(&plan.policy).filter(|_| plan.is_closing()) {
                    before.until_us = before.until_us.min(entry.us);
                }
            }
            Event::Answered { call, answer, .. } => {
                let Some((plan, began_us)) = begun.remove(call) else { continue };
                match (plan.action, answer) {
                    (Action::Close(for_us) | Action::CloseUnit(for_us, _), Answer::Done) => {
                        let unit = if let Action::CloseUnit(_, unit) = plan.action { Some(unit) } else { None };
                        let (from_us, until_us) = (entry.us + ADOPTED_US, began_us + for_us);
                        let mut new = Closed { from_us, until_us, unit };
                        // Of two at about the same time, either may have replaced the other.
                        if let Some(before) = closed.get(&plan.policy).filter(|before| before.from_us > began_us) {
                            let is_alike = before.unit == unit;
                            new.until_us = if is_alike { new.until_us.min(before.until_us) } else { 0 };
                        }
                        closed.insert(plan.policy, new);
                    }
                    (_, Answer::Admitted(DecidedBy::Backend)) => {
                        let is_within = |closed: &&Closed| closed.from_us <= began_us && entry.us < closed.until_us;
                        if let Some(closed) = closed.get(&plan.policy).filter(is_within).filter(|it| it.denies(plan)) {
                            let what = closed.unit.unwrap_or("calls");
                            let how = format!(
                                "call {call} was admitted, and p{} is closed to {what} since {}",
                                plan.policy,
                                closed.from_us - ADOPTED_US
                            );
                            return Err(Violation { us: entry.us, promise: CLOSED, how });
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Ok(())
}
