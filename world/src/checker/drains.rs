//! Processes that drain their limiters before they end: what was metered before has arrived at a server by then.

use std::collections::BTreeMap;

use tallygate::DecidedBy;

use super::keys::{Tally, find, parts, tally, unit};
use super::violation::Violation;
use crate::history::{Answer, Deed, Entry, Event};
use crate::workload::{Action, CallPlan, Scenario};

const ARRIVED: &str = "when a limiter is drained, all settlements have arrived";

/// A settlement of a unit: of which policy and subject, what the call cost, and what it has used.
#[derive(PartialEq, Eq)]
struct Settlement {
    tally: Tally,
    unit: &'static str,
    cost: u64,
    used: u64,
}

/// What is known so far of calls with meters.
#[derive(Default)]
struct Metered<'h> {
    begun: BTreeMap<usize, &'h CallPlan>,
    admitted: BTreeMap<usize, &'h CallPlan>,
    /// The calls that are over and not yet settled, in the order in which they ended.
    over: Vec<(usize, &'h CallPlan)>,
}

/// Worlds in which nothing fails: there no settlement is lost.
pub(super) fn check(scenario: &Scenario, history: &[Entry]) -> Result<(), Violation> {
    if !scenario.is_calm() {
        return Ok(());
    }
    let mut metered = Metered::default();
    for entry in history {
        match &entry.event {
            Event::Called { call, plan, .. } => _ = metered.begun.insert(*call, plan),
            Event::Answered { call, answer, .. } => {
                let Some(plan) = metered.begun.remove(call) else { continue };
                match answer {
                    Answer::Admitted(DecidedBy::Backend) => _ = metered.admitted.insert(*call, plan),
                    Answer::Drained(left) if left.is_nothing() => metered.check_drained(plan.process, entry.us)?,
                    _ => {}
                }
            }
            Event::Ended { call } => {
                let ended = metered.admitted.remove(call).filter(|plan| settlement_by(plan).is_some());
                metered.over.extend(ended.map(|plan| (*call, plan)));
            }
            Event::Killed { process } => {
                metered.admitted.retain(|_, plan| plan.process != *process);
                metered.over.retain(|(_, plan)| plan.process != *process);
            }
            Event::Done { deed, .. } => metered.settle(scenario, deed),
            _ => {}
        }
    }
    Ok(())
}

impl Metered<'_> {
    fn settle(&mut self, scenario: &Scenario, deed: &Deed) {
        let arrived = settlements_in(scenario, deed);
        let is_meant = |(_, plan): &(usize, &CallPlan)| settlement_by(plan).is_some_and(|own| arrived.contains(&own));
        if let Some(place) = self.over.iter().position(is_meant) {
            self.over.remove(place);
        }
    }

    fn check_drained(&self, process: usize, us: u64) -> Result<(), Violation> {
        let late = self.over.iter().find(|(_, plan)| plan.process == process);
        let Some((call, plan)) = late else { return Ok(()) };
        let how = format!("process {process} was drained, and call {call} is not settled: {plan}");
        Err(Violation { us, promise: ARRIVED, how })
    }
}

/// The settlement of a call by its meters: of the first unit of which it has not used what it cost.
fn settlement_by(plan: &CallPlan) -> Option<Settlement> {
    let Action::Meter(_, used) = plan.action else { return None };
    let tally = (plan.policy, plan.subject);
    let settlements = used.named().map(|(unit, used)| Settlement { tally, unit, cost: plan.cost_of(Some(unit)), used });
    { settlements }.find(|settlement| settlement.used != settlement.cost)
}

/// What a server has settled of the first subject that has the unit.
fn settlements_in(scenario: &Scenario, deed: &Deed) -> Vec<Settlement> {
    let Some(recount) = deed.recount() else { return Vec::new() };
    let settlement = |(place, key): (usize, &String)| {
        let unit = unit(key)?;
        let first = find(scenario, key)?.0.groups.iter().find(|group| group.unit == Some(unit))?;
        let is_first = parts(key)?.1.starts_with(first.label.unwrap_or("user"));
        let (cost, used) = recount.change(place)?;
        is_first.then_some(Settlement { tally: tally(scenario, key)?, unit, cost, used })
    };
    recount.keys.iter().enumerate().filter_map(settlement).collect()
}
