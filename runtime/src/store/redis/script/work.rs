//! Estimates how long a request keeps the server busy.
//!
//! The server does nothing else while it runs a script, so the work of the requests limits how many share a call, not
//! their number. The estimates are for the worst case of a request. `cargo xtask bench bounds` compares them with real
//! servers.

use std::iter;

use tallygate_rules::Rule;

use crate::algorithm::{self, search_ns};
use crate::call::{Call, CallOptions};
use crate::policy::RuleGroup;

/// Work of the server, in nanoseconds of an ordinary machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Work(u32);

/// The fixed part of a request to the script for windows, and what each rule adds.
const PLAIN: u32 = 4_000;
const PLAIN_RULE: u32 = 1_000;
/// The fixed part of a request to the general script.
const REQUEST: u32 = 4_000;
/// Each tally adds this much: it is read and written.
const TALLY: u32 = 6_000;
/// Each rule adds this much.
const RULE: u32 = 1_500;
/// A report on a rule adds this much.
const REPORT: u32 = 1_500;
/// Each denial that a ban remembers adds this much.
const DENIAL: u32 = 90;
/// A refund adds this much if it rewrites as much of a log as it may.
const REWRITE: u32 = 420_000;

impl Work {
    /// The most work in one call of a script.
    pub(crate) const MOST: Self = Self(1_500_000);

    pub(crate) fn of_plain(request: Call<'_>) -> Self {
        let windows = request.groups().iter().flat_map(|group| &group.windows);
        let each = windows.map(|window| PLAIN_RULE + search_ns(window.count));
        Self(each.fold(PLAIN, u32::saturating_add))
    }

    pub(crate) fn of(request: Call<'_>) -> Self {
        let tallies = request.groups().iter().map(|group| tally(group, request.options));
        Self(tallies.fold(REQUEST, u32::saturating_add))
    }

    pub(crate) fn of_refund(group: &RuleGroup) -> Self {
        let log = if group.windows.is_empty() { 0 } else { REWRITE };
        Self(tally(group, CallOptions::PLAIN).saturating_add(log))
    }

    /// Returns what is left after this work; `None` if it is too much.
    pub(crate) fn checked_sub(self, work: Self) -> Option<Self> {
        self.0.checked_sub(work.0).map(Self)
    }
}

/// Splits a refund into parts, each with as many subjects as one call of the script has time for. Most often there is
/// one part.
pub(crate) fn refund_parts(request: Call<'_>) -> impl Iterator<Item = Call<'_>> {
    let mut first = 0;
    iter::from_fn(move || {
        let groups = request.groups().get(first..).filter(|groups| !groups.is_empty())?;
        let mut room = Some(Work::MOST);
        let fitting = groups.iter().take_while(|group| {
            room = room.and_then(|room| room.checked_sub(Work::of_refund(group)));
            room.is_some()
        });
        let fitting = fitting.count().max(1);
        let part = request.parts_between(first, first + fitting - 1);
        first += fitting;
        Some(part)
    })
}

fn tally(group: &RuleGroup, options: CallOptions) -> u32 {
    let denials = group.ban.map_or(0, |ban| u32::try_from(ban.denials()).unwrap_or(u32::MAX));
    let rules = group.rules.iter().map(|rule| self::rule(rule, options));
    rules.fold(TALLY.saturating_add(denials.saturating_mul(DENIAL)), u32::saturating_add)
}

fn rule(rule: &Rule, options: CallOptions) -> u32 {
    let report = if options.report { REPORT } else { 0 };
    RULE + report + algorithm::with(rule, |counting| counting.work_ns(options.report))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::Policy;
    use crate::subject::Subject;

    /// How many subjects each part has, if all have such a rule.
    fn parts(subjects: u32, rule: impl Fn(Duration) -> Rule) -> Vec<usize> {
        let policy = (0..subjects).fold(Policy::builder("p"), |policy, label| {
            policy.rule_on(label.to_string(), rule(Duration::from_secs((1 + label).into())))
        });
        let (policy, subject) = (policy.build().unwrap(), Subject::everyone().key());
        let subjects = vec![subject; policy.groups().len()];
        let request = Call::new(&policy, &subjects, CallOptions::PLAIN);
        refund_parts(request).map(|part| part.groups().len()).collect()
    }

    #[test]
    fn a_refund_of_few_subjects_is_one_call() {
        for subjects in 1..=3 {
            assert_eq!(parts(subjects, |per| Rule::sliding_window(9, per)), [subjects as usize]);
        }
        assert_eq!(parts(32, |per| Rule::fixed_window(9, per)), [32]);
    }

    #[test]
    fn a_refund_of_many_logs_is_several_calls() {
        let parts = parts(32, |per| Rule::sliding_window(9, per));
        assert!(parts.iter().all(|&subjects| (1..=3).contains(&subjects)), "{parts:?}");
        assert_eq!(parts.iter().sum::<usize>(), 32);
    }
}
