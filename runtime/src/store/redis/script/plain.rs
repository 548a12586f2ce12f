//! Requests of the common case, which a script of their own decides with less work: one subject, and nothing but sliding
//! windows that the call may fit.

use tallygate_lua as lua;

use crate::policy::RuleGroup;
use crate::store::request::{CallOptions, Request};

/// Returns whether the script for windows decides this request. Any number of such requests may go together, whatever
/// their policies and costs; with others they are decided by the script for everything.
pub(crate) fn is_plain(request: Request<'_>) -> bool {
    let CallOptions { cost, report, peek, .. } = request.options;
    let [group] = request.policy.groups() else { return false };
    !report && !peek && cost > 0 && fits_windows(group, cost)
}

/// Whether the rules are windows alone, and large enough for the call.
fn fits_windows(group: &RuleGroup, cost: u64) -> bool {
    let is_large_enough = group.windows.iter().all(|window| {
        let weight = if window.is_duplicate { 1 } else { cost };
        weight <= window.count
    });
    let rules = 1..=lua::MAX_PLAIN_RULES;
    rules.contains(&group.rules.len()) && group.is_windows && is_large_enough
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::{Ban, Rule};

    use super::*;
    use crate::policy::{Policy, PolicyBuilder};

    const MINUTE: Duration = Duration::from_secs(60);

    fn window(count: u64) -> PolicyBuilder {
        Policy::builder("p").rule(Rule::sliding_window(count, MINUTE))
    }

    fn is_plain_with(policy: &Policy, options: CallOptions) -> bool {
        is_plain(Request::new(policy, &[], options))
    }

    #[test]
    fn windows_and_duplicates_of_one_subject_are_plain() {
        let policy = window(2).rule(Rule::sliding_window(3, 2 * MINUTE)).rule(Rule::duplicate(MINUTE / 60));
        assert!(is_plain_with(&policy.build().unwrap(), CallOptions::PLAIN));
    }

    #[test]
    fn other_rules_bans_and_subjects_are_not_plain() {
        let bucket = window(2).rule(Rule::fixed_window(1, 2 * MINUTE));
        let banning = window(2).ban(Ban::new(3, MINUTE, 60 * MINUTE));
        let several = window(2).rule_on("network", Rule::sliding_window(2, MINUTE));
        for policy in [bucket, banning, several] {
            assert!(!is_plain_with(&policy.build().unwrap(), CallOptions::PLAIN));
        }
    }

    #[test]
    fn a_call_that_is_charged_as_usual_and_may_fit_is_plain() {
        let policy = window(2).rule(Rule::duplicate(MINUTE / 60)).build().unwrap();
        for (cost, expected) in [(0, false), (1, true), (2, true), (3, false)] {
            assert_eq!(is_plain_with(&policy, CallOptions { cost, ..CallOptions::PLAIN }), expected);
        }
        assert!(!is_plain_with(&policy, CallOptions { report: true, ..CallOptions::PLAIN }));
        assert!(!is_plain_with(&policy, CallOptions { peek: true, ..CallOptions::PLAIN }));
        assert!(!is_plain_with(&policy.with_counts([0, 1]), CallOptions::PLAIN));
    }
}
