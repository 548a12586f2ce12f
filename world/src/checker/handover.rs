//! A server that takes another one's place: from when on all calls are decided there, and nothing more is lost.

use std::collections::BTreeMap;

use tallygate::DecidedBy;

use super::violation::Violation;
use crate::history::{Answer, Deed, Entry, Event, Verdict};
use crate::workload::{CallPlan, Fault, FaultPlan, Handover, Scenario, Topology};

const DECIDED: &str =
    "calls are decided within a second after another server is named, or all the time if it was planned";
const KEPT: &str = "nothing is lost from one second after another server is named";

const SECOND_US: u64 = 1_000_000;

/// Worlds in which nothing else happens: there it is known how long everything takes.
pub(super) fn check(scenario: &Scenario, history: &[Entry]) -> Result<(), Violation> {
    let [plan] = scenario.faults.as_slice() else { return Ok(()) };
    let trip_us = scenario.link.delay_us + scenario.link.jitter_us;
    if scenario.link.loss > 0.0 || plan.us < 5 * SECOND_US {
        return Ok(());
    }
    let named = history.iter().find(|entry| matches!(entry.event, Event::Named { .. })).map(|entry| entry.us);
    let Some(fresh_us) = named.map(|us| us + SECOND_US + scenario.settings.deadline_us + 20 * trip_us) else {
        return if is_seamless(scenario, plan) { check_calls(scenario, history, plan.us) } else { Ok(()) };
    };
    // One that hung counts what had arrived there before.
    if !matches!(plan.fault, Fault::Hang) {
        check_branches(history, fresh_us)?;
    }
    check_calls(scenario, history, if is_seamless(scenario, plan) { plan.us } else { fresh_us })
}

/// Whether no call fails meanwhile.
fn is_seamless(scenario: &Scenario, plan: &FaultPlan) -> bool {
    match plan.fault {
        Fault::Failover(Handover::InStep) => scenario.topology == Topology::Cluster,
        Fault::Failover(Handover::BySentinel) | Fault::Move => true,
        _ => false,
    }
}

/// Who was replaced counts no more calls.
fn check_branches(history: &[Entry], from_us: u64) -> Result<(), Violation> {
    let late = history.iter().filter(|entry| entry.us > from_us).find_map(|entry| match &entry.event {
        Event::Done { server, branch: 1.., deed: Deed::Decided { keys, verdict: Verdict::Admitted, .. }, .. } => {
            Some((entry.us, format!("server {server} was replaced and admits for {}", keys.join(" "))))
        }
        _ => None,
    });
    late.map_or(Ok(()), |(us, how)| Err(Violation { us, promise: KEPT, how }))
}

/// All calls from then on are decided by Redis.
fn check_calls(scenario: &Scenario, history: &[Entry], from_us: u64) -> Result<(), Violation> {
    let fault = scenario.faults.first().map(|plan| plan.fault);
    if !matches!(fault, Some(Fault::Failover(_) | Fault::Move)) {
        return Ok(());
    }
    let mut begun: BTreeMap<usize, &CallPlan> = BTreeMap::new();
    for entry in history {
        match &entry.event {
            Event::Called { call, plan, .. } if entry.us > from_us && has_time(scenario, plan) => {
                begun.insert(*call, plan);
            }
            Event::Answered { call, answer, .. } if begun.contains_key(call) => match answer {
                Answer::Admitted(DecidedBy::Backend) | Answer::Denied { by: DecidedBy::Backend, .. } | Answer::Done => {
                }
                _ => {
                    return Err(Violation { us: entry.us, promise: DECIDED, how: format!("call {call} was {answer}") });
                }
            },
            _ => {}
        }
    }
    Ok(())
}

/// Whether the deadline of a call is long enough for a connection to a server that knows no script yet.
fn has_time(scenario: &Scenario, plan: &CallPlan) -> bool {
    let own = scenario.policies.get(plan.policy).and_then(|policy| policy.deadline_us);
    let trip_us = scenario.link.delay_us + scenario.link.jitter_us;
    !plan.is_administration() && own.unwrap_or(scenario.settings.deadline_us) > 30 * trip_us
}
