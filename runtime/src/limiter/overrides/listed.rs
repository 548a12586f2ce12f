//! An override as it is listed.

use std::fmt;
use std::time::Duration;

use tallygate_rules::{Replacement, Rule, RuleId};

use super::active::ActiveOverride;
use super::target::{OverrideContent, OverrideTarget};
use super::text;
use crate::decision::RoundedUp;
use crate::subject::Subject;

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
    pub(super) fn new(target: &OverrideTarget, found: &ActiveOverride, now_us: u64) -> Self {
        let left = |expires_us: u64| Duration::from_micros(expires_us.saturating_sub(now_us));
        let expires_in = found.expires_us.map(left);
        Self { target: target.clone(), content: found.content.clone(), expires_in }
    }

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
