//! An override in force, the policies that it changes, and what a list shows of it.

use std::fmt;
use std::time::Duration;

use hashbrown::HashMap;
use tallygate_rules::{Replacement, Rule, RuleId};

use super::target::{OverrideContent, OverrideTarget};
use super::text;
use crate::decision::RoundedUp;
use crate::observe::{LineBudget, ReportedOnce, log};
use crate::policy::Policy;
use crate::subject::Subject;
use crate::sync::{Mutex, lock};
use crate::system::RandomState;

/// The most policies for which the result of a change is kept.
const MOST_CHANGED: usize = 16;

/// The results of a change for the latest policies that it was applied to. Only a few are kept, as a policy may be
/// built for a single call.
#[derive(Default)]
pub(super) struct ChangedPolicies {
    latest: Mutex<Vec<ChangedPolicy>>,
    /// Set once it was reported that the change does not fit a policy.
    pub(super) reported: ReportedOnce,
}

/// A policy, and the changed policy for the subject with this label; `None` if the change does nothing.
struct ChangedPolicy {
    policy: Policy,
    label: Option<Box<str>>,
    changed: Option<Policy>,
}

impl ChangedPolicies {
    /// Returns the result for `policy`. If it is unknown, `change` makes it.
    pub(super) fn get(
        &self,
        policy: &Policy,
        label: Option<&str>,
        change: impl FnOnce() -> Option<Policy>,
    ) -> Option<Policy> {
        let mut latest = lock(&self.latest);
        let is_same = |known: &&ChangedPolicy| known.policy.is_clone_of(policy) && known.label.as_deref() == label;
        if let Some(known) = latest.iter().find(is_same) {
            return known.changed.clone();
        }
        let changed = change();
        if latest.len() >= MOST_CHANGED {
            latest.remove(0);
        }
        latest.push(ChangedPolicy { policy: policy.clone(), label: label.map(Into::into), changed: changed.clone() });
        changed
    }
}

/// Overrides by their targets.
pub(super) type OverrideTable = HashMap<OverrideTarget, ActiveOverride, RandomState>;

/// An override that is in force.
pub(super) struct ActiveOverride {
    /// The override as it is stored.
    pub(super) text: Box<str>,
    pub(super) content: OverrideContent,
    /// In microseconds since 1970, by the clock of the store.
    pub(super) expires_us: Option<u64>,
    /// Whether its single rules may count any subject.
    any_subject: bool,
    changed: ChangedPolicies,
}

impl ActiveOverride {
    /// Reads an override from its stored text.
    pub(super) fn read(target: &OverrideTarget, text: &str) -> Result<Self, String> {
        let (content, expires_us) = text::read(text)?;
        Ok(Self::new(target, content, expires_us, text))
    }

    pub(super) fn new(target: &OverrideTarget, content: OverrideContent, expires_us: Option<u64>, text: &str) -> Self {
        Self {
            text: text.into(),
            content,
            expires_us,
            any_subject: target.is_for_any_subject(),
            changed: ChangedPolicies::default(),
        }
    }

    pub(super) fn is_expired(&self, now_us: u64) -> bool {
        self.expires_us.is_some_and(|expires_us| expires_us <= now_us)
    }

    /// Returns what a list shows of it.
    pub(super) fn listed(&self, target: &OverrideTarget, now_us: u64) -> Override {
        let left = |expires_us: u64| Duration::from_micros(expires_us.saturating_sub(now_us));
        Override { target: target.clone(), content: self.content.clone(), expires_in: self.expires_us.map(left) }
    }

    /// Whether it puts a policy or a rule in shadow, or enforces it.
    pub(super) fn sets_shadow(&self) -> bool {
        let tries_rules = match &self.content.replacement {
            Some(Replacement::All(rules)) => rules.iter().any(Rule::is_shadow),
            Some(Replacement::Single(rules)) => rules.iter().any(|(_, rule)| rule.is_shadow()),
            None => false,
        };
        tries_rules || self.content.shadow.is_some()
    }

    pub(super) fn has_rules(&self) -> bool {
        self.content.replacement.is_some()
    }

    pub(super) fn is_for_single_rules(&self) -> bool {
        matches!(self.content.replacement, Some(Replacement::Single(_)))
    }

    /// Returns the policy with these rules on the subject with this label; `None` if the policy has none of the
    /// replaced single rules.
    pub(super) fn apply(&self, policy: &Policy, label: Option<&str>, lines: &LineBudget) -> Option<Policy> {
        let replacement = self.content.replacement.as_ref()?;
        self.changed.get(policy, label, || {
            self.report_ignored(policy, label, replacement, lines);
            policy.with_replacement(label, replacement)
        })
    }

    /// Reports once that a policy does not have a replaced rule, or counts other units than the new rules.
    fn report_ignored(&self, policy: &Policy, label: Option<&str>, replacement: &Replacement, lines: &LineBudget) {
        let rules = policy.effective_rules();
        if let Some(mistake) = replacement.unit_mistake(&rules) {
            if self.changed.reported.is_first() {
                lines.report(|| log::override_of_other_units(policy.name(), &mistake));
            }
            return;
        }
        let Replacement::Single(single) = replacement else { return };
        let mut missing = single.iter().filter(|(id, _)| {
            !rules.iter().any(|rule| rule.has_id(id) && (self.any_subject || rule.label.as_deref() == label))
        });
        if let Some((id, _)) = missing.next()
            && self.changed.reported.is_first()
        {
            lines.report(|| log::override_without_rule(policy.name(), &text::selector(id)));
        }
    }
}

/// An override that is in force: see [`Limiter::overrides`](crate::Limiter::overrides).
///
/// It is written as the text of its rules and how long it still holds: `daily = 500 per 1d for 90s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    target: OverrideTarget,
    content: OverrideContent,
    expires_in: Option<Duration>,
}

impl Override {
    /// Returns the name of the policy.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.target.policy
    }

    /// Returns the label of the subject whose rules are overridden, or `None` if it is the main one.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        self.target.label.as_deref()
    }

    /// Returns the one subject of the override; `None` if it is for all subjects without an override of their own.
    #[must_use]
    pub fn subject(&self) -> Option<&Subject> {
        self.target.subject.as_ref()
    }

    /// Returns the rules, each with the rule that it replaces; `None` means that they replace all rules of the subject in
    /// their units.
    /// An override that only sets whether the policy is in shadow has none.
    pub fn rules(&self) -> impl Iterator<Item = (Option<&RuleId>, &Rule)> {
        let (all, single): (&[_], &[_]) = match &self.content.replacement {
            Some(Replacement::All(rules)) => (rules, &[]),
            Some(Replacement::Single(rules)) => (&[], rules),
            None => (&[], &[]),
        };
        let single = single.iter().map(|(id, rule)| (Some(id), rule));
        all.iter().map(|rule| (None, rule)).chain(single)
    }

    /// Returns whether the override puts the policy in shadow, where no call is denied; `None` if it does not set that.
    #[must_use]
    pub fn shadow(&self) -> Option<bool> {
        self.content.shadow
    }

    /// Returns how long the override still holds; `None` if it holds until it is cleared.
    #[must_use]
    pub fn expires_in(&self) -> Option<Duration> {
        self.expires_in
    }
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::write_content(&self.content))?;
        self.expires_in.map_or(Ok(()), |left| write!(f, " for {}", RoundedUp(left)))
    }
}
