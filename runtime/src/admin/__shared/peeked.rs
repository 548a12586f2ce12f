//! A peek at the subjects of a call, with its report.

use serde_json::{Value, json};
use tallygate_rules::{Role, Rule};

use super::{OpenPolicy, RuleState, json, shadow};
use crate::admin::Subjects;
use crate::admin::template::KeyTemplate;
use crate::decision::{DecidedBy, Decision, Denial, PauseStatus, RejectionKind, RuleStatus};
use crate::error::{BackendError, Error};
use crate::limiter::{Limiter, Override};

/// A peek at the subjects of a call.
pub struct Peeked<'a> {
    /// The policy.
    pub listed: &'a OpenPolicy<'a>,
    /// The subjects, with placeholders for those that were not given.
    pub subjects: Subjects,
    /// The labels of the subjects that were not given.
    pub missing: Vec<Option<String>>,
    /// The decision, with a report.
    pub decision: Decision,
    /// The pause that denies the call, with who has said it.
    pub pause: Option<PauseStatus>,
    /// The overrides that are for these subjects.
    pub overrides: Vec<Override>,
    /// What the call costs, by its units.
    costs: Vec<(String, u64)>,
    /// The labels of the subjects that the rules count, in the order of their positions.
    labels: Vec<Option<String>>,
}

impl<'a> Peeked<'a> {
    /// Peeks at these subjects for a call of these costs by their units, of 1 call unless they say it. `missing` has the labels of
    /// the subjects that were not given.
    ///
    /// # Errors
    ///
    /// Redis does not answer, or a policy in force cannot be read.
    pub async fn look(
        limiter: &Limiter,
        listed: &'a OpenPolicy<'a>,
        (subjects, missing): (Subjects, Vec<Option<String>>),
        costs: Vec<(String, u64)>,
    ) -> Result<Self, Error> {
        let check = subjects.check(limiter, &listed.policy).peek().report();
        let check = costs.iter().fold(check, |check, (unit, cost)| check.cost_of(unit, *cost));
        let decision = check.clone().await?;
        if decision.decided_by() != DecidedBy::Backend {
            return Err(BackendError::away("redis: it is away, so nobody knows where the subject stands").into());
        }
        let pause = match &decision {
            Decision::Denied(denial) if denial.kind() == RejectionKind::Paused => check.clone().pause_status().await?,
            _ => None,
        };
        let labels = check.labels()?;
        let is_meant = |one: &Override| {
            let subject = subjects.subject(one.label());
            one.policy() == listed.described.name() && one.subject().is_none_or(|only| Some(only) == subject)
        };
        let overrides = limiter.overrides().await?.into_iter().filter(is_meant).collect();
        Ok(Self { listed, subjects, missing, decision, pause, overrides, costs, labels })
    }

    /// Returns whether a call would be admitted, as far as its counts are known; `None` if no count is known.
    #[must_use]
    pub fn admitted(&self) -> Option<bool> {
        match &self.decision {
            Decision::Denied(denial) => self.is_of_given(denial).then_some(false),
            Decision::Allowed(_) => {
                let decided = self.decision.report();
                let is_known = decided.iter().all(|status| self.is_given(status.position()))
                    && self.left_out().len() < decided.len();
                is_known.then_some(true)
            }
        }
    }

    /// Whether the subject that is denied was given: that of the rule, the paused one, or the main one, which is banned.
    fn is_of_given(&self, denial: &Denial) -> bool {
        match (denial.rule(), denial.kind()) {
            (Some(rule), _) => self.is_given(rule.position()),
            (None, RejectionKind::Paused) => self.has_subject(self.listed.policy.paused_label()),
            (None, _) => self.has_subject(None),
        }
    }

    /// Whether the subject that the rule at that position counts was given.
    fn is_given(&self, position: usize) -> bool {
        self.labels.get(position).is_none_or(|label| self.has_subject(label.as_deref()))
    }

    /// Whether the subject with this label was given; `None` is the main one.
    fn has_subject(&self, label: Option<&str>) -> bool {
        self.missing.iter().all(|missing| missing.as_deref() != label)
    }

    /// Returns the states of the rules whose subjects were given, rules in shadow included.
    #[must_use]
    pub fn report(&self) -> Vec<RuleState> {
        let all = self.decided().chain(self.tried());
        let mut all: Vec<_> = all.map(|status| self.listed.varying.state(status)).collect();
        all.sort_by_key(|state| state.position);
        all
    }

    /// Returns the positions of the rules in shadow that would deny the call, if the others admit it.
    #[must_use]
    pub fn denied_in_shadow(&self) -> Vec<usize> {
        let is_known = |status: &&RuleStatus| self.listed.varying.listed(status.rule()).is_none();
        let denying = self.tried().filter(is_known).filter(|status| status.remaining() < self.needed(status.rule()));
        if self.admitted() == Some(true) { denying.map(RuleStatus::position).collect() } else { Vec::new() }
    }

    /// How much the rule has to have left for the call. A unit that is not named is charged afterwards, and needs some. Each call
    /// weighs 1 for duplicates and concurrent calls, whatever its cost.
    fn needed(&self, rule: &Rule) -> u64 {
        if rule.role() != Role::Limit {
            return 1;
        }
        let unit = rule.counted();
        self.costs.iter().find(|(named, _)| named == unit).map_or(1, |(_, cost)| *cost)
    }

    /// Returns the states of the rules that decide the call and whose subjects were given.
    fn decided(&self) -> impl Iterator<Item = &RuleStatus> {
        self.decision.report().iter().filter(|status| self.is_given(status.position()))
    }

    /// Returns the states of the rules in shadow that are tried beside them.
    fn tried(&self) -> impl Iterator<Item = &RuleStatus> {
        self.decision.shadow_report().iter().filter(|status| self.is_given(status.position()))
    }

    /// Returns the peek as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let denial = match &self.decision {
            Decision::Allowed(_) => None,
            Decision::Denied(denial) => Some(denial),
        };
        let others = self.subjects.others().filter(|(label, _)| self.has_subject(Some(label)));
        let others: Vec<_> =
            others.map(|(label, subject)| json!({ "label": label, "subject": subject.to_string() })).collect();
        json!({
            "policy": self.listed.described.name(),
            "subject": self.has_subject(None).then(|| self.subjects.main().to_string()),
            "others": others,
            "missing": self.missing.iter().map(|label| self.missing_json(label.as_deref())).collect::<Vec<_>>(),
            "admitted": self.admitted(),
            "denied": denial.map(|denial| json::denial(denial, self.pause.as_ref())),
            "prefetch_ms": self.listed.described.prefetch().map(json::ms),
            "shadow": self.shadow(),
            "rules": self.report().iter().map(json::state).collect::<Vec<_>>(),
            "overrides": self.overrides.iter().map(json::override_in_force).collect::<Vec<_>>(),
        })
    }

    /// Returns whether the policy is in shadow, so that no call is denied; `None` if that is not known.
    #[must_use]
    pub fn shadow(&self) -> Option<bool> {
        // The report has rules in shadow only if all rules are in shadow, as by an override.
        let are_all_tried = self.decision.report().iter().any(|status| status.rule().is_shadow());
        if are_all_tried { Some(true) } else { self.listed_shadow() }
    }

    fn listed_shadow(&self) -> Option<bool> {
        shadow(self.listed.described, &self.overrides)
    }

    fn missing_json(&self, label: Option<&str>) -> Value {
        json!({ "label": label, "key": self.key(label) })
    }

    /// Returns the key of the subject with that label, if it is known.
    #[must_use]
    pub fn key(&self, label: Option<&str>) -> Option<&str> {
        match label {
            None => self.listed.described.key(),
            Some(label) => self.listed.described.subjects().find(|subject| subject.label() == label)?.key(),
        }
    }

    /// Returns whether the subject of that label can be made from values: its key is known, and shows none by `Debug`.
    #[must_use]
    pub fn takes_values(&self, label: Option<&str>) -> bool {
        let read = |key| KeyTemplate::read(self.listed.described.name(), key);
        self.key(label).is_some_and(|key| read(key).is_ok_and(|template| template.debugged().is_none()))
    }

    /// Returns the positions of the rules whose count each call gives, except one that denies the call whatever its
    /// count is.
    #[must_use]
    pub fn left_out(&self) -> Vec<usize> {
        let denying = match &self.decision {
            Decision::Denied(denial) => denial.rule().map(|rule| rule.position()),
            Decision::Allowed(_) => None,
        };
        let varying = self.decided().filter(|status| self.listed.varying.listed(status.rule()).is_some());
        varying.map(RuleStatus::position).filter(|&position| denying != Some(position)).collect()
    }
}
