//! What a process admits by itself in outages: in any window of its clock, at most its part of each count.

use std::collections::BTreeMap;

use tallygate::{Algorithm, DecidedBy, Role};

use super::violation::Violation;
use crate::history::{Answer, Entry, Event};
use crate::workload::{Action, CallPlan, Scenario};

const PART: &str = "a process that decides alone admits at most its part of the count in any window";

/// A process, a policy and a subject.
type Place = (usize, usize, usize);

pub(super) fn check(scenario: &Scenario, history: &[Entry]) -> Result<(), Violation> {
    let mut begun: BTreeMap<usize, &CallPlan> = BTreeMap::new();
    // When calls were admitted. A process that is killed begins anew.
    let mut admitted: BTreeMap<Place, Vec<(u64, &CallPlan)>> = BTreeMap::new();
    // A reset empties the tallies of the process, too, at some time until it is over.
    let mut resets: BTreeMap<Place, usize> = BTreeMap::new();
    for entry in history {
        match &entry.event {
            Event::Called { call, plan, .. } => {
                begun.insert(*call, plan);
                if matches!(plan.action, Action::Reset) {
                    *resets.entry(place(plan)).or_default() += 1;
                }
            }
            Event::Answered { call, local_us, answer: Answer::Admitted(DecidedBy::Standby), .. } => {
                let Some(plan) = begun.get(call) else { continue };
                if matches!(plan.action, Action::Peek) || resets.contains_key(&place(plan)) {
                    continue;
                }
                let hits = admitted.entry(place(plan)).or_default();
                hits.push((*local_us, plan));
                check_last(scenario, plan, hits, entry.us)?;
            }
            Event::Ended { call } | Event::Dropped { call } => {
                let Some(plan) = begun.get(call).filter(|plan| matches!(plan.action, Action::Reset)) else { continue };
                admitted.remove(&place(plan));
                if let Some(number) = resets.get_mut(&place(plan)) {
                    *number -= 1;
                }
                resets.retain(|_, number| *number > 0);
            }
            Event::Killed { process } => admitted.retain(|(number, ..), _| number != process),
            _ => {}
        }
    }
    Ok(())
}

fn place(plan: &CallPlan) -> Place {
    (plan.process, plan.policy, plan.subject)
}

/// The least that a call counts in a unit, also once it is refunded or settled.
fn least(plan: &CallPlan, unit: Option<&str>) -> u64 {
    plan.cost_of(unit).min(plan.used_of(unit))
}

fn check_last(scenario: &Scenario, plan: &CallPlan, hits: &[(u64, &CallPlan)], us: u64) -> Result<(), Violation> {
    let Some(&(last_us, _)) = hits.last() else { return Ok(()) };
    let Some(policy) = scenario.policies.get(plan.policy) else { return Ok(()) };
    for rule in policy.groups.iter().flat_map(|group| &group.rules) {
        let Algorithm::SlidingWindow { per } = rule.algorithm() else { continue };
        let part = rule.count().div_ceil(scenario.settings.processes);
        let per_us = u64::try_from(per.as_micros()).unwrap_or(u64::MAX);
        let weight = |cost: u64| if rule.role() == Role::Duplicate { cost.min(1) } else { cost };
        let live = hits.iter().rev().take_while(|(at_us, _)| at_us + per_us > last_us);
        let sum: u64 = live.map(|(_, plan)| weight(least(plan, rule.unit()))).sum();
        if sum > part {
            let how = format!("process {} admitted {sum} under `{rule}`, and its part is {part}", plan.process);
            return Err(Violation { us, promise: PART, how });
        }
    }
    Ok(())
}
