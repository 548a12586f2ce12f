//! What a process admits by itself in outages: in any window of its clock, at most its part of each count.

use std::collections::BTreeMap;

use tallygate::{Algorithm, DecidedBy, Role};

use super::violation::Violation;
use crate::history::{Answer, Entry, Event};
use crate::workload::{Action, CallPlan, Scenario};

const PART: &str = "a process that decides alone admits at most its part of the count in any window";

pub(super) fn check(scenario: &Scenario, history: &[Entry]) -> Result<(), Violation> {
    let mut begun: BTreeMap<usize, &CallPlan> = BTreeMap::new();
    // By process, policy and subject: when a call was admitted and what it cost. A process that is killed begins anew.
    let mut admitted: BTreeMap<(usize, usize, usize), Vec<(u64, u64)>> = BTreeMap::new();
    for entry in history {
        match &entry.event {
            Event::Called { call, plan, .. } => _ = begun.insert(*call, plan),
            Event::Answered { call, local_us, answer: Answer::Admitted(DecidedBy::Standby), .. } => {
                let Some(plan) = begun.get(call) else { continue };
                if matches!(plan.action, Action::Peek) {
                    continue;
                }
                let hits = admitted.entry((plan.process, plan.policy, plan.subject)).or_default();
                hits.push((*local_us, plan.cost));
                check_last(scenario, plan, hits, entry.us)?;
            }
            Event::Answered { call, answer: Answer::Done | Answer::Failed(_), .. } => {
                // A reset changes the tallies of the process, also while Redis is there or away. So does a refund.
                let Some(plan) = begun.get(call) else { continue };
                if matches!(plan.action, Action::Reset) {
                    admitted.remove(&(plan.process, plan.policy, plan.subject));
                }
            }
            Event::Killed { process } => admitted.retain(|(number, ..), _| number != process),
            _ => {}
        }
    }
    Ok(())
}

fn check_last(scenario: &Scenario, plan: &CallPlan, hits: &[(u64, u64)], us: u64) -> Result<(), Violation> {
    let Some(&(last_us, _)) = hits.last() else { return Ok(()) };
    let corrects = |call: &&CallPlan| matches!(call.action, Action::Refund(_) | Action::Settle(..));
    if scenario.calls.iter().filter(|call| call.policy == plan.policy).any(|call| corrects(&call)) {
        return Ok(());
    }
    let rules = scenario.policies.get(plan.policy).into_iter().flat_map(|policy| &policy.groups);
    for rule in rules.flat_map(|group| &group.rules) {
        let Algorithm::SlidingWindow { per } = rule.algorithm() else { continue };
        let part = rule.count().div_ceil(scenario.settings.processes);
        let per_us = u64::try_from(per.as_micros()).unwrap_or(u64::MAX);
        let weight = |cost: u64| if rule.role() == Role::Duplicate { cost.min(1) } else { cost };
        let live = hits.iter().rev().take_while(|(at_us, _)| at_us + per_us > last_us);
        let sum: u64 = live.map(|(_, cost)| weight(*cost)).sum();
        if sum > part {
            let how = format!("process {} admitted {sum} under `{rule}`, and its part is {part}", plan.process);
            return Err(Violation { us, promise: PART, how });
        }
    }
    Ok(())
}
