//! Denials: a server has made each of them lately, or it is cached for no longer than the settings say, and no reset ends it.

use std::collections::BTreeMap;
use std::iter;

use tallygate::{DecidedBy, RejectionKind};

use super::keys::{Tally, find, parts, tally};
use super::violation::Violation;
use crate::history::{Answer, Deed, Entry, Event, Verdict};
use crate::workload::{Action, CallPlan, Scenario};

const RESET: &str = "a denial is not cached beyond a reset";
const CACHED: &str = "a denial is cached no longer than `denial_cache`";

/// How long a call may be on its way, and the renewal of what is cached.
const ROOM_US: u64 = 1_000_000;

/// What is known so far.
#[derive(Default)]
struct Denials<'h> {
    /// The calls, when they began, and whether another call began shortly before or waits.
    begun: BTreeMap<usize, (&'h CallPlan, u64, bool)>,
    /// When a server denied last.
    denied: BTreeMap<Tally, u64>,
    /// When it denied last by a rule on another subject, which a reset leaves as it is.
    denied_by_others: BTreeMap<Tally, u64>,
    /// When a process called last. While one call asks again, others get the denial that is cached.
    called: BTreeMap<(usize, Tally), u64>,
    /// When a process began the last reset that was done, and when it was done.
    reset: BTreeMap<(usize, Tally), (u64, u64)>,
}

pub(super) fn check(scenario: &Scenario, history: &[Entry]) -> Result<(), Violation> {
    let mut denials = Denials::default();
    for entry in history {
        match &entry.event {
            Event::Called { call, plan, .. } => denials.begin(*call, plan, entry.us),
            Event::Done {
                deed: Deed::Decided { keys, verdict: verdict @ (Verdict::Denied(_) | Verdict::Banned), .. },
                ..
            } => {
                let tallies = || keys.iter().filter_map(|key| tally(scenario, key)).map(|tally| (tally, entry.us));
                denials.denied.extend(tallies());
                if is_by_other(scenario, keys, *verdict) {
                    denials.denied_by_others.extend(tallies());
                }
            }
            Event::Answered { call, answer, .. } => {
                let Some((plan, began_us, is_behind)) = denials.begun.remove(call) else { continue };
                match answer {
                    Answer::Done if plan.action == Action::Reset => {
                        denials.reset.insert((plan.process, (plan.policy, plan.subject)), (began_us, entry.us));
                    }
                    // A pause is said by somebody, and no rule denies.
                    Answer::Denied { kind: RejectionKind::Paused, .. } => {}
                    Answer::Denied { by: DecidedBy::Backend, .. } => {
                        denials.check_denied(scenario, plan, (began_us, is_behind), entry.us)?;
                    }
                    _ => {}
                }
            }
            // It begins anew, without a cache.
            Event::Killed { process } => denials.reset.retain(|(number, _), _| number != process),
            _ => {}
        }
    }
    Ok(())
}

/// Whether the rule that denied a call counts another subject than the main one.
fn is_by_other(scenario: &Scenario, keys: &[String], verdict: Verdict) -> bool {
    let Verdict::Denied(rule) = verdict else { return false };
    let rules = |key: &String| find(scenario, key).map_or(0, |(_, rules)| rules.len());
    let denying = keys.iter().flat_map(|key| iter::repeat_n(key, rules(key))).nth(usize::try_from(rule).unwrap_or(0));
    denying.and_then(|key| parts(key)).is_some_and(|(_, subject)| !subject.starts_with("user"))
}

impl<'h> Denials<'h> {
    fn begin(&mut self, call: usize, plan: &'h CallPlan, us: u64) {
        let before = self.called.insert((plan.process, (plan.policy, plan.subject)), us);
        let is_of_it = |other: &CallPlan| {
            (other.process, other.policy, other.subject) == (plan.process, plan.policy, plan.subject)
        };
        let waits = |other: &CallPlan| matches!(other.action, Action::Wait(_)) && is_of_it(other);
        let is_behind = before.is_some_and(|before_us| before_us + ROOM_US > us)
            || self.begun.values().any(|(other, ..)| waits(other));
        self.begun.insert(call, (plan, us, is_behind));
    }

    fn check_denied(
        &self,
        scenario: &Scenario,
        plan: &CallPlan,
        (began_us, is_behind): (u64, bool),
        us: u64,
    ) -> Result<(), Violation> {
        // An override that closes a limit denies without asking.
        let is_closed = |call: &CallPlan| call.policy == plan.policy && call.is_closing();
        if scenario.calls.iter().any(is_closed) {
            return Ok(());
        }
        let tally = (plan.policy, plan.subject);
        let denied_us = self.denied.get(&tally).copied().unwrap_or_default();
        let oldest_us = scenario.settings.denial_cache_us + ROOM_US;
        let by_other_us = self.denied_by_others.get(&tally);
        let reset = self.reset.get(&(plan.process, tally));
        let reset = reset.filter(|_| by_other_us.is_none_or(|us| us + oldest_us < began_us));
        if reset.is_some_and(|(reset_us, done_us)| denied_us < *reset_us && *done_us < began_us) {
            let how = format!("a call from {began_us} on was denied, and the last denial was before the reset");
            return Err(Violation { us, promise: RESET, how });
        }
        if scenario.is_calm() && !is_behind && denied_us + oldest_us < began_us {
            let how = format!("a call from {began_us} on was denied, and servers denied last at {denied_us}");
            return Err(Violation { us, promise: CACHED, how });
        }
        Ok(())
    }
}
