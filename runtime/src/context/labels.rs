//! The labels of a policy's subjects beside the main one: each needs a key.

use std::collections::BTreeSet;

use tallygate_rules::{nearest, remedy};

use super::ContextKey;
use crate::error::Error;
use crate::observe::{ReportedOnce, log};
use crate::policy::Policy;

/// Reports to the log, once, a subject of the policy that has no key: every request fails, and in shadow nothing else
/// shows it. `function` is the one that takes the key of the main subject.
pub(crate) fn report_lack_of_keys(
    reported: &ReportedOnce,
    function: &str,
    policy: &Policy,
    subjects: &[(String, ContextKey)],
) {
    if reported.is_first()
        && let Some(label) = left_out(policy, subjects)
    {
        log::subject_lacks_key(function, policy.name(), label);
    }
}

/// Checks that a policy has rules on the subject of that label. `function` is the one that takes the key of the main subject.
pub(crate) fn check(function: &str, policy: &Policy, label: &str) -> Result<(), Error> {
    if labels(policy).any(|known| known == label) {
        return Ok(());
    }
    let known: Vec<_> = labels(policy).collect();
    let remedy = match &known[..] {
        [] => format!("its rules are on the main subject, whose key is that of `{function}`"),
        known => remedy(nearest(label, known.iter().copied()), "its subjects are", known),
    };
    Err(Error::new(format!("`subject`: policy `{}` has no rule on a subject `{label}`; {remedy}", policy.name())))
}

/// The first subject of the policy that has no key.
fn left_out<'p>(policy: &'p Policy, subjects: &[(String, ContextKey)]) -> Option<&'p str> {
    labels(policy).find(|known| subjects.iter().all(|(label, _)| label != known))
}

fn labels(policy: &Policy) -> impl Iterator<Item = &str> {
    let mut seen = BTreeSet::new();
    policy.subject_labels().flatten().map(|label| &**label).filter(move |label| seen.insert(*label))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::Rule;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn policy(labels: &[&'static str]) -> Policy {
        let builder = Policy::builder("api").rule(Rule::sliding_window(1, MINUTE));
        let add = |builder: crate::PolicyBuilder, label: &&'static str| {
            builder.rule_on(*label, Rule::sliding_window(2, MINUTE)).rule_on(*label, Rule::concurrency(3, MINUTE))
        };
        labels.iter().fold(builder, add).build().unwrap()
    }

    #[test]
    fn a_label_that_the_policy_does_not_have_is_refused_with_those_that_it_has() {
        let mistake =
            |labels: &[&'static str], label: &str| check("web::limit", &policy(labels), label).unwrap_err().to_string();
        let none = |label: &str| format!("`subject`: policy `api` has no rule on a subject `{label}`; ");
        assert!(check("web::limit", &policy(&["network"]), "network").is_ok());
        assert_eq!(mistake(&["network", "all"], "netwrk"), none("netwrk") + "did you mean `network`?");
        assert_eq!(mistake(&["network", "all"], "user"), none("user") + "its subjects are `network`, `all`");
        let main = "its rules are on the main subject, whose key is that of `web::limit`";
        assert_eq!(mistake(&[], "user"), none("user") + main);
    }

    #[test]
    fn a_subject_without_a_key_is_left_out() {
        let key = |label: &str| (label.to_owned(), ContextKey::parse("{@ip}").unwrap());
        let policy = policy(&["network", "all"]);
        assert_eq!(left_out(&policy, &[key("network")]), Some("all"));
        assert_eq!(left_out(&policy, &[key("all"), key("network")]), None);
    }
}
