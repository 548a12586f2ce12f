//! An override in force, and the policies that it changes.

use hashbrown::HashMap;
use tallygate_rules::{Replacement, Rule};

use super::target::{OverrideContent, OverrideTarget};
use super::text;
use crate::observe::{LineBudget, ReportedOnce, log};
use crate::policy::Policy;
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
