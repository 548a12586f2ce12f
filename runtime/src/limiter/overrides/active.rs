//! An override as it is applied to policies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tallygate_rules::RuleId;

use super::target::OverrideTarget;
use super::text;
use crate::observe::log;
use crate::policy::{Policy, Replacement};

/// For how many policies of its name an override remembers what it made of them.
const MOST_APPLIED: usize = 16;

/// What an override made of a policy, on the subject of one label.
struct Applied {
    policy: Policy,
    label: Option<Box<str>>,
    made: Option<Policy>,
}

/// An override as it is applied to policies.
pub(super) struct ActiveOverride {
    /// As it is stored. Also in memory an override is what its text says.
    pub(super) text: Box<str>,
    pub(super) replacement: Replacement,
    /// In microseconds since 1970, by the clock of the store.
    pub(super) expires_us: Option<u64>,
    /// The latest policies that it was applied to, and what it made of them.
    applied: Mutex<Vec<Applied>>,
    /// Whether its single rules may be on any subject.
    any_subject: bool,
    /// Whether a rule that a policy does not have was reported.
    reported: AtomicBool,
}

impl ActiveOverride {
    /// Reads an override from its text.
    pub(super) fn read(target: &OverrideTarget, text: &str) -> Result<Self, String> {
        let (replacement, expires_us) = text::read(text)?;
        Ok(Self {
            text: text.into(),
            replacement,
            expires_us,
            applied: Mutex::default(),
            any_subject: target.is_for_any_subject(),
            reported: AtomicBool::new(false),
        })
    }

    pub(super) fn is_expired(&self, now_us: u64) -> bool {
        self.expires_us.is_some_and(|expires_us| expires_us <= now_us)
    }

    /// Whether it replaces single rules.
    pub(super) fn is_for_single_rules(&self) -> bool {
        matches!(self.replacement, Replacement::Single(_))
    }

    /// Returns the policy with these rules on the subject of that label, or `None` if it has none of the single rules that
    /// they replace.
    pub(super) fn apply(&self, policy: &Policy, label: Option<&str>) -> Option<Policy> {
        let mut applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |known: &&Applied| known.policy.is(policy) && known.label.as_deref() == label;
        if let Some(known) = applied.iter().find(is_same) {
            return known.made.clone();
        }
        self.report_missing(policy, label);
        let made = policy.with_replacement(label, &self.replacement);
        // Policies that are built for a single call do not pile up.
        if applied.len() >= MOST_APPLIED {
            applied.remove(0);
        }
        applied.push(Applied { policy: policy.clone(), label: label.map(Into::into), made: made.clone() });
        made
    }

    /// Reports rules that the policy does not have, once: it may be built for each call.
    fn report_missing(&self, policy: &Policy, label: Option<&str>) {
        let Replacement::Single(rules) = &self.replacement else { return };
        let labels = || policy.groups().iter().map(|group| group.label.as_deref());
        let is_missing = |id: &RuleId| {
            !labels().any(|other| (self.any_subject || other == label) && policy.position_of(other, id).is_some())
        };
        if let Some((id, _)) = rules.iter().find(|(id, _)| is_missing(id))
            && !self.reported.swap(true, Ordering::Relaxed)
        {
            log::override_without_rule(policy.name(), &text::selector(id));
        }
    }
}
