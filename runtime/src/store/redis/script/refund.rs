//! The parts of a refund: as many subjects as one call of the script has time for.

use super::work::Work;
use crate::store::request::{Request, Scope};

/// Splits a refund into its parts, most often one.
pub(crate) fn parts(request: Request<'_>) -> impl Iterator<Item = Request<'_>> {
    let mut first = request.first_group();
    let (mut groups, mut subjects) = (request.groups(), request.subjects);
    std::iter::from_fn(move || {
        let mut room = Some(Work::MOST);
        let fitting = groups.iter().take_while(|group| {
            room = room.and_then(|room| room.checked_sub(Work::of_refund(group)));
            room.is_some()
        });
        let fitting = fitting.count().max(1);
        let (own, others) = subjects.split_at_checked(fitting)?;
        let part = Request { subjects: own, scope: Scope::Part(first), ..request };
        (first, subjects, groups) = (first + fitting, others, groups.get(fitting..).unwrap_or_default());
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::Rule;

    use super::*;
    use crate::policy::Policy;
    use crate::store::request::CallOptions;
    use crate::subject::Subject;

    /// How many subjects each part has, if all have such a rule.
    fn parts(subjects: u32, rule: impl Fn(Duration) -> Rule) -> Vec<usize> {
        let policy = (0..subjects).fold(Policy::builder("p"), |policy, label| {
            policy.rule_on(label.to_string(), rule(Duration::from_secs((1 + label).into())))
        });
        let (policy, subject) = (policy.build().unwrap(), Subject::everyone().key());
        let subjects = vec![subject; policy.groups().len()];
        let request = Request::new(&policy, &subjects, CallOptions::PLAIN);
        super::parts(request).map(|part| part.groups().len()).collect()
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
