//! What a caller sees: an answer in time, and of a kind that the settings allow.

use std::collections::BTreeMap;

use tallygate::{DecidedBy, OnOutage};

use super::violation::Violation;
use crate::history::{Answer, Entry, Event};
use crate::workload::{Action, CallPlan, PolicyPlan, Scenario};

const IN_TIME: &str = "a call is answered by its deadline, by the clock of its process";
const ANSWERED: &str = "a call is answered";
const SETTINGS: &str = "only `on_outage` lets another than Redis decide";

/// How much later than its deadline an answer may be: the timers of tokio count milliseconds.
const ROUNDING_US: u64 = 1_000;

pub(super) fn check(scenario: &Scenario, history: &[Entry]) -> Result<(), Violation> {
    let mut begun: BTreeMap<usize, (&CallPlan, u64)> = BTreeMap::new();
    for entry in history {
        match &entry.event {
            Event::Called { call, plan, local_us } => _ = begun.insert(*call, (plan, *local_us)),
            Event::Answered { call, local_us, paused_us, answer } => {
                let Some((plan, began_us)) = begun.remove(call) else { continue };
                let took_us = (local_us - began_us).saturating_sub(*paused_us);
                check_time(scenario, plan, took_us, entry.us, *call)?;
                check_kind(scenario, plan, *answer, entry.us, *call)?;
            }
            Event::Dropped { call } => _ = begun.remove(call),
            _ => {}
        }
    }
    Ok(())
}

fn check_time(scenario: &Scenario, plan: &CallPlan, took_us: u64, us: u64, call: usize) -> Result<(), Violation> {
    let Some(policy) = scenario.policies.get(plan.policy) else { return Ok(()) };
    let deadline_us = policy.deadline_us.unwrap_or(scenario.settings.deadline_us);
    let most_us = match plan.action {
        Action::Stop(within_us) => within_us,
        // It is no decision, and asks about one tally after the other.
        _ if plan.is_administration() => return Ok(()),
        Action::Wait(within_us) => within_us + last_asked(policy) * (deadline_us + ROUNDING_US),
        _ => deadline_us,
    };
    if took_us <= most_us + ROUNDING_US {
        return Ok(());
    }
    let how = format!("call {call} took {took_us} µs, and may take {most_us}");
    Err(Violation { us, promise: IN_TIME, how })
}

/// How often a caller asks when its wait is over.
pub(super) fn last_asked(policy: &PolicyPlan) -> u64 {
    let with_ban = if policy.ban.is_some() { 2 } else { 1 };
    if policy.has_leases() { 2 * with_ban } else { with_ban }
}

fn check_kind(scenario: &Scenario, plan: &CallPlan, answer: Answer, us: u64, call: usize) -> Result<(), Violation> {
    let Some(policy) = scenario.policies.get(plan.policy) else { return Ok(()) };
    let by = match answer {
        Answer::Admitted(by) | Answer::Denied { by, .. } => by,
        Answer::Failed(_) | Answer::Done | Answer::Drained(_) => return Ok(()),
    };
    let is_allowed = match by {
        DecidedBy::Backend => true,
        DecidedBy::Standby => scenario.on_outage(policy) == OnOutage::Local,
        DecidedBy::Nobody => scenario.on_outage(policy) == OnOutage::Allow,
        _ => false,
    };
    if is_allowed {
        return Ok(());
    }
    Err(Violation { us, promise: SETTINGS, how: format!("call {call} was {answer}") })
}

/// The calls that were begun and never answered nor dropped, though their process lived.
pub(super) fn unanswered(history: &[Entry]) -> Option<Violation> {
    let mut open = BTreeMap::new();
    for entry in history {
        match &entry.event {
            Event::Called { call, .. } => _ = open.insert(*call, entry.us),
            Event::Answered { call, .. } | Event::Dropped { call } => _ = open.remove(call),
            _ => {}
        }
    }
    let (call, us) = open.into_iter().next()?;
    Some(Violation { us, promise: ANSWERED, how: format!("call {call} was never answered") })
}
