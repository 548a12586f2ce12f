//! What a peek says of the subjects of a call.

use serde_json::{Value, json};

use super::{OpenPolicy, json, shadow};
use crate::admin::Subjects;
use crate::decision::{DecidedBy, Decision, RuleStatus};
use crate::error::{BackendError, Error};
use crate::limiter::{Limiter, Override};

/// What a peek says of the subjects of a call.
pub struct Peeked<'a> {
    /// The policy.
    pub listed: &'a OpenPolicy<'a>,
    /// The subjects, with placeholders for those that were not given.
    pub subjects: Subjects,
    /// The labels of the subjects that were not given.
    pub missing: Vec<Option<String>>,
    /// What was decided, with a report.
    pub decision: Decision,
    /// The overrides that are for these subjects.
    pub overrides: Vec<Override>,
    /// The labels of the subjects that the rules count, in the order of their positions.
    labels: Vec<Option<String>>,
}

impl<'a> Peeked<'a> {
    /// Asks where these subjects stand before a call of that cost. The labels of those that were not given are `missing`.
    ///
    /// # Errors
    ///
    /// Redis does not answer, or a policy in force cannot be read.
    pub async fn look(
        limiter: &Limiter,
        listed: &'a OpenPolicy<'a>,
        (subjects, missing): (Subjects, Vec<Option<String>>),
        cost: u64,
    ) -> Result<Self, Error> {
        let check = subjects.check(limiter, &listed.policy).cost(cost).peek().report();
        let decision = check.clone().await?;
        if decision.decided_by() != DecidedBy::Backend {
            return Err(BackendError::away("redis: it is away, so nobody knows where the subject stands").into());
        }
        let labels = check.labels()?;
        let is_meant = |one: &Override| {
            let subject = match one.label() {
                None => Some(subjects.main()),
                Some(label) => subjects.others().find(|(known, _)| *known == label).map(|(_, subject)| subject),
            };
            one.policy() == listed.described.name() && one.subject().is_none_or(|only| Some(only) == subject)
        };
        let overrides = limiter.overrides().await?.into_iter().filter(is_meant).collect();
        Ok(Self { listed, subjects, missing, decision, overrides, labels })
    }

    /// Returns whether a call would be admitted, as far as the counts of its rules are known; `None` where none is.
    #[must_use]
    pub fn admitted(&self) -> Option<bool> {
        match &self.decision {
            Decision::Denied(denial) if denial.rule().is_none_or(|rule| self.is_given(rule.position())) => Some(false),
            Decision::Denied(_) => None,
            Decision::Allowed(_) => {
                let is_known = self.missing.is_empty() && self.left_out().len() < self.decision.report().len();
                is_known.then_some(true)
            }
        }
    }

    /// Whether the subject was given that the rule at that position counts.
    fn is_given(&self, position: usize) -> bool {
        self.labels.get(position).is_none_or(|label| !self.missing.contains(label))
    }

    /// Returns where the rules stand whose subjects were given.
    pub fn report(&self) -> impl Iterator<Item = &RuleStatus> {
        self.decision.report().iter().filter(|status| self.is_given(status.position()))
    }

    /// Returns all of it as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let denial = match &self.decision {
            Decision::Allowed(_) => None,
            Decision::Denied(denial) => Some(denial),
        };
        let is_given = |label: Option<&str>| !self.missing.iter().any(|missing| missing.as_deref() == label);
        let others = self.subjects.others().filter(|(label, _)| is_given(Some(label)));
        let others: Vec<_> =
            others.map(|(label, subject)| json!({ "label": label, "subject": subject.to_string() })).collect();
        json!({
            "policy": self.listed.described.name(),
            "subject": is_given(None).then(|| self.subjects.main().to_string()),
            "others": others,
            "missing": self.missing.iter().map(|label| self.missing_json(label.as_deref())).collect::<Vec<_>>(),
            "admitted": self.admitted(),
            "denied": denial.map(json::denial),
            "prefetch_ms": self.listed.described.prefetch().map(json::ms),
            "shadow": self.shadow(),
            "rules": self.report().map(|status| json::status(status, &self.listed.varying)).collect::<Vec<_>>(),
            "overrides": self.overrides.iter().map(json::override_in_force).collect::<Vec<_>>(),
        })
    }

    /// Returns whether the policy is in shadow, if that is known: then no call is denied.
    #[must_use]
    pub fn shadow(&self) -> Option<bool> {
        shadow(self.listed.described, &self.overrides)
    }

    fn missing_json(&self, label: Option<&str>) -> Value {
        json!({ "label": label, "key": self.key(label) })
    }

    /// Returns how the subject of that label is written, if that is known.
    #[must_use]
    pub fn key(&self, label: Option<&str>) -> Option<&str> {
        match label {
            None => self.listed.described.key(),
            Some(label) => self.listed.described.subjects().find(|subject| subject.label() == label)?.key(),
        }
    }

    /// Returns the positions of the rules whose count each call gives, but for one that denies the call whatever its count
    /// is.
    #[must_use]
    pub fn left_out(&self) -> Vec<usize> {
        let denying = match &self.decision {
            Decision::Denied(denial) => denial.rule().map(|rule| rule.position()),
            Decision::Allowed(_) => None,
        };
        let varying = self.report().filter(|status| self.listed.varying.listed(status.rule()).is_some());
        varying.map(RuleStatus::position).filter(|&position| denying != Some(position)).collect()
    }
}
