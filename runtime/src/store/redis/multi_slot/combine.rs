//! The answer to a call, made of the answers to its parts.

use std::cmp::Reverse;

use tallygate_rules::Role;

use crate::decision::{AdmittedAt, Wait};
use crate::policy::Policy;
use crate::store::answer::{Answer, Outcome};

/// Combines the answers to all parts of a call, in the order of the policy's groups, as one server would answer it.
pub(super) fn combine(policy: &Policy, parts: &[Answer]) -> Answer {
    let at = AdmittedAt::Each(parts.iter().map(|part| part.at.us(0)).collect());
    let report: Vec<_> = parts.iter().flat_map(|part| part.report.rules()).cloned().collect();
    Answer { outcome: outcome(policy, parts), report: report.into(), at, lapse: Wait::NEVER }
}

fn outcome(policy: &Policy, parts: &[Answer]) -> Outcome {
    let longest = parts.iter().enumerate().max_by_key(|(place, part)| (part.outcome.wait(), Reverse(*place)));
    let Some((_, longest)) = longest.filter(|(_, part)| !part.outcome.wait().is_none()) else {
        return Outcome::Admitted;
    };
    let lapse = parts.iter().map(|part| part.lapse).min().unwrap_or(Wait::NEVER);
    let is_bound = parts.iter().filter_map(denying).any(|rule| has_role(policy, rule, Role::Concurrency));
    let retry_after = if is_bound || longest.outcome.wait() < lapse { longest.outcome.wait() } else { Wait::NEVER };
    if parts.iter().any(|part| matches!(part.outcome, Outcome::Banned { .. })) {
        return Outcome::Banned { retry_after };
    }
    let duplicate = parts.iter().filter_map(denying).find(|&rule| has_role(policy, rule, Role::Duplicate));
    match duplicate.or_else(|| denying(longest)) {
        Some(rule) => Outcome::Denied { rule, retry_after },
        None => Outcome::Admitted,
    }
}

/// The rule by which a part denies the call, if it does.
fn denying(part: &Answer) -> Option<u32> {
    match part.outcome {
        Outcome::Denied { rule, .. } => Some(rule),
        _ => None,
    }
}

fn has_role(policy: &Policy, position: u32, role: Role) -> bool {
    policy.rules().get(position as usize).is_some_and(|rule| rule.role() == role)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::Rule;

    use super::*;
    use crate::decision::Report;

    const SECOND: Duration = Duration::from_secs(1);

    /// Rules on the main subject at positions 1 and 2, the second against duplicates, and on two others at 0 and 3.
    fn policy() -> Policy {
        let rule = |seconds: u32| Rule::sliding_window(1, seconds * SECOND);
        let builder = Policy::builder("p").rule_on("a", rule(9)).rule(rule(1)).rule(Rule::duplicate(3 * SECOND));
        builder.rule_on("b", Rule::duplicate(2 * SECOND)).build().unwrap()
    }

    fn seconds(wait: Option<u64>) -> Wait {
        wait.map_or(Wait::NEVER, |seconds| Wait::us(seconds * 1_000_000))
    }

    fn part(outcome: Outcome, lapse: Option<u64>) -> Answer {
        Answer { lapse: seconds(lapse), ..Answer::new(outcome, Report::default(), 7) }
    }

    fn denied(rule: usize, wait: Option<u64>) -> Outcome {
        Outcome::denied(rule, seconds(wait))
    }

    fn banned(wait: Option<u64>) -> Outcome {
        Outcome::Banned { retry_after: seconds(wait) }
    }

    fn combined(parts: [(Outcome, Option<u64>); 3]) -> Outcome {
        combine(&policy(), &parts.map(|(outcome, lapse)| part(outcome, lapse))).outcome
    }

    const ADMITTED: (Outcome, Option<u64>) = (Outcome::Admitted, None);

    #[test]
    fn a_call_is_admitted_if_all_parts_are() {
        assert_eq!(combined([ADMITTED; 3]), Outcome::Admitted);
        assert_eq!(combined([ADMITTED, (Outcome::Admitted, Some(1)), ADMITTED]), Outcome::Admitted);
        let answer = combine(&policy(), &[(); 3].map(|()| part(Outcome::Admitted, None)));
        assert_eq!(answer.at, AdmittedAt::Each([7; 3].into()));
    }

    #[test]
    fn the_rule_with_the_longest_wait_is_reported_and_of_equal_ones_the_first() {
        for (first, second, reported) in
            [(Some(1), Some(2), 0), (Some(2), Some(2), 1), (None, Some(2), 1), (Some(1), None, 0)]
        {
            let longest = [first, second].into_iter().max_by_key(|wait| wait.unwrap_or(9)).flatten();
            let parts = [(denied(1, first), None), (denied(0, second), None), ADMITTED];
            assert_eq!(combined(parts), denied(reported, longest), "{first:?} {second:?}");
        }
    }

    #[test]
    fn a_duplicate_is_reported_before_all_others_and_waits_as_long_as_they_do() {
        assert_eq!(combined([(denied(1, Some(9)), None), ADMITTED, (denied(3, Some(2)), None)]), denied(3, Some(9)));
        assert_eq!(combined([(denied(2, Some(1)), None), ADMITTED, (denied(3, Some(2)), None)]), denied(2, Some(2)));
    }

    #[test]
    fn a_ban_goes_before_all_rules_and_waits_for_them() {
        assert_eq!(combined([(banned(Some(5)), None), (denied(0, Some(9)), None), ADMITTED]), banned(Some(9)));
        assert_eq!(combined([(banned(Some(5)), None), (denied(0, None), None), ADMITTED]), banned(None));
    }

    #[test]
    fn a_wait_in_which_another_part_lapses_is_for_ever() {
        let lapsing = |seconds| (Outcome::Admitted, Some(seconds));
        assert_eq!(combined([(denied(1, Some(5)), None), lapsing(6), ADMITTED]), denied(1, Some(5)));
        assert_eq!(combined([(denied(1, Some(5)), None), lapsing(5), ADMITTED]), denied(1, None));
        assert_eq!(combined([(banned(Some(5)), None), lapsing(6), lapsing(2)]), banned(None));
    }
}
