//! Calls that run at the same time: never more than the limit, where no process is paused or cut off for long.

use std::collections::{BTreeMap, BTreeSet};

use tallygate::{DecidedBy, Role};

use super::violation::Violation;
use crate::history::{Answer, Entry, Event};
use crate::workload::{Action, CallPlan, Fault, Scenario};

const LIMIT: &str = "at most as many calls run at the same time as the limit allows";

pub(super) fn check(scenario: &Scenario, history: &[Entry]) -> Result<(), Violation> {
    if !scenario.faults.iter().all(|plan| keeps_leases(&plan.fault)) {
        return Ok(());
    }
    let mut begun: BTreeMap<usize, &CallPlan> = BTreeMap::new();
    let mut running: BTreeMap<(usize, usize), BTreeSet<usize>> = BTreeMap::new();
    for entry in history {
        match &entry.event {
            Event::Called { call, plan, .. } => _ = begun.insert(*call, plan),
            Event::Answered { call, answer: Answer::Admitted(DecidedBy::Backend), .. } => {
                let Some(plan) = begun.get(call).filter(|plan| runs_until_its_end(plan)) else { continue };
                let calls = running.entry((plan.policy, plan.subject)).or_default();
                calls.insert(*call);
                if let Some(limit) = limit(scenario, plan).filter(|limit| calls.len() as u64 > *limit) {
                    let how = format!("{calls:?} run under p{} at a limit of {limit}", plan.policy);
                    return Err(Violation { us: entry.us, promise: LIMIT, how });
                }
            }
            Event::Ended { call } => {
                if let Some(plan) = begun.remove(call) {
                    running.entry((plan.policy, plan.subject)).or_default().remove(call);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a call holds its lease until its caller says that it has ended. A refund and a settlement give it back before
/// that, and the meter of a call may outlive it.
fn runs_until_its_end(plan: &CallPlan) -> bool {
    plan.action != Action::Peek && !plan.is_recounted() && plan.cost > 0
}

/// Whether a process that goes on keeps its leases all the same.
fn keeps_leases(fault: &Fault) -> bool {
    matches!(fault, Fault::Flush | Fault::Cut { .. } | Fault::Hangup | Fault::Kill)
}

/// The limit of a policy on calls at the same time, unless its leases are forgotten by a reset.
fn limit(scenario: &Scenario, plan: &CallPlan) -> Option<u64> {
    let is_reset = |call: &CallPlan| call.policy == plan.policy && call.action == Action::Reset;
    if scenario.calls.iter().any(is_reset) {
        return None;
    }
    let rules = scenario.policies.get(plan.policy)?.groups.iter().flat_map(|group| &group.rules);
    rules.filter(|rule| rule.role() == Role::Concurrency).map(tallygate::Rule::count).min()
}
