//! A policy with the keys of its subjects, which are read when the program runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use tallygate_rules::{nearest, remedy};

use super::ContextKey;
use crate::error::Error;
use crate::observe::{ReportedOnce, log};
use crate::policy::Policy;

/// A policy, and the key of each of its subjects. A subject gets its key after the policy, so it may have none yet.
#[derive(Clone)]
pub(crate) struct KeyedPolicy {
    /// The policy, with the keys as its templates.
    pub(crate) policy: Policy,
    /// The key of the main subject.
    pub(crate) key: ContextKey,
    /// The keys of other subjects, by their labels.
    pub(crate) others: Vec<(String, ContextKey)>,
    /// The function that takes the key of the main subject.
    function: &'static str,
    /// Whether the log has reported a subject without a key.
    lack: Arc<ReportedOnce>,
}

impl KeyedPolicy {
    /// Returns the policy with the key of its main subject, which `function` has taken.
    pub(crate) fn new(function: &'static str, policy: &Policy, key: &str) -> Result<Self, Error> {
        let (template, key) = (key, ContextKey::parse(key)?);
        let policy = policy.with_template(None, template);
        Ok(Self { policy, key, others: Vec::new(), function, lack: Arc::default() })
    }

    /// Sets the key of another subject. The policy needs a rule on it.
    pub(crate) fn set_subject(&mut self, label: String, key: &str) -> Result<(), Error> {
        let (template, key) = (key, ContextKey::parse(key)?);
        check_label(self.function, &self.policy, &label)?;
        // A clone with fewer keys may have reported those that it lacks.
        self.lack = Arc::default();
        self.policy = self.policy.with_template(Some(label.clone()), template);
        self.others.push((label, key));
        Ok(())
    }

    /// Reports to the log, once, a subject of the policy that has no key: every request fails, and in shadow nothing else
    /// shows it.
    pub(crate) fn report_lack_of_keys(&self) {
        if self.lack.is_first()
            && let Some(label) = left_out(&self.policy, &self.others)
        {
            log::subject_lacks_key(self.function, self.policy.name(), label);
        }
    }

    /// Returns the key of the subject that can be paused, if the policy has one.
    pub(crate) fn paused_key(&self) -> &ContextKey {
        let paused = self.policy.paused_label();
        self.others.iter().find(|(label, _)| Some(label.as_str()) == paused).map_or(&self.key, |(_, key)| key)
    }

    /// Returns the names of the values that the keys show.
    pub(crate) fn shown_names(&self) -> impl Iterator<Item = &str> {
        self.others.iter().flat_map(|(_, key)| key.names()).chain(self.key.names())
    }
}

/// Checks that the policy has rules on the subject of that label.
fn check_label(function: &str, policy: &Policy, label: &str) -> Result<(), Error> {
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
        let mistake = |labels: &[&'static str], label: &str| {
            check_label("web::limit", &policy(labels), label).unwrap_err().to_string()
        };
        let none = |label: &str| format!("`subject`: policy `api` has no rule on a subject `{label}`; ");
        assert!(check_label("web::limit", &policy(&["network"]), "network").is_ok());
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
