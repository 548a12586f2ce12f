//! Variants of a policy: with other counts, other settings or other rules.

use std::borrow::Cow;
use std::num::NonZeroU64;

use tallygate_rules::{EffectiveRule, Replacement, Rule};

#[cfg(feature = "config")]
use super::PolicySettings;
#[cfg(feature = "web")]
use super::registry;
use super::rule_group::RuleGroup;
use super::shared::Shared;
#[cfg(feature = "web")]
use super::templates::Templates;
use super::{Inner, Policy};

impl Policy {
    /// Returns the same policy with other counts: the first for its first rule, and so on; rules beyond keep theirs.
    ///
    /// It has the name and the tallies of this one, so each call may have the counts that its caller has paid for. A count of
    /// 0 closes the limit: every call is denied, and none can ever be admitted. A count that is too great for its algorithm is
    /// the greatest that is not.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let limiter = Limiter::in_memory();
    /// let alice = Subject::of("alice");
    /// let free = Policy::builder("api").rule(Rule::sliding_window(1, Duration::from_secs(3600))).build()?;
    /// assert!(limiter.check(&free, &alice).await?.is_allowed());
    /// assert!(!limiter.check(&free, &alice).await?.is_allowed());
    ///
    /// let paid = free.with_counts([100]);
    /// assert!(limiter.check(&paid, &alice).report().await?.is_allowed());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_counts(&self, counts: impl IntoIterator<Item = u64>) -> Self {
        let mut rules: Box<[Rule]> = self.rules().into();
        for (rule, count) in rules.iter_mut().zip(counts) {
            *rule = rule.clone().with_count(count.min(rule.greatest_count()));
        }
        self.variant(self.with_rules(rules))
    }

    /// Returns the part of one of so many processes: the same policy, with counts that are divided by their number and
    /// rounded up. The denials of a ban are not divided: the smaller the counts, the more calls are denied that no other
    /// process would deny.
    pub(crate) fn part_of(&self, processes: NonZeroU64) -> Cow<'_, Self> {
        if processes == NonZeroU64::MIN {
            return Cow::Borrowed(self);
        }
        let part = || self.with_rules(self.rules().iter().map(|rule| rule.clone().divided(processes)).collect());
        match self.inner.part.get_or_init(|| (processes, Self { inner: self.inner.share_alike(part()) })) {
            (known, part) if *known == processes => Cow::Borrowed(part),
            // Limiters that divide by different numbers share the policy.
            _ => Cow::Owned(Self { inner: Shared::counted(part()) }),
        }
    }

    /// Returns the same policy with those settings that are given.
    #[cfg(feature = "config")]
    pub(crate) fn with_settings(&self, given: PolicySettings) -> Self {
        let own = self.inner.settings;
        let settings = PolicySettings {
            on_outage: given.on_outage.or(own.on_outage),
            deadline: given.deadline.or(own.deadline),
            warn_at: given.warn_at.or(own.warn_at),
        };
        self.variant(Inner { settings, ..self.with_rules(self.rules().into()) })
    }

    /// Returns the same policy, of which this is how its subjects are written. It is known to this process like one that was
    /// built, as it may be all that is left of that.
    #[cfg(feature = "web")]
    pub(crate) fn with_templates(&self, templates: Templates) -> Self {
        let inner = Inner { templates, ..self.with_rules(self.rules().into()) };
        let policy = Self { inner: Shared::counted(inner) };
        registry::register(&policy);
        policy
    }

    /// Returns the same policy with other rules on one of its subjects, which are not checked. `None` says that nothing is
    /// changed.
    pub(crate) fn with_replacement(&self, label: Option<&str>, replacement: &Replacement) -> Option<Self> {
        let rules = replacement.apply(&self.effective_rules(), label)?;
        let (rules, replaced): (Vec<_>, Vec<_>) =
            rules.into_iter().map(|EffectiveRule { label, rule, position }| ((label, rule), position)).unzip();
        let Inner { name, ban, settings, .. } = &*self.inner;
        let inner = Inner::new(name.clone(), rules, *ban, *settings, replaced.into());
        Some(self.variant(inner))
    }

    /// Returns the rules in force, each with the label of its subject and the position of the policy's own rule that it
    /// replaces or is.
    pub(crate) fn effective_rules(&self) -> Vec<EffectiveRule> {
        let effective = |(place, rule): (usize, &Rule)| EffectiveRule {
            label: self.label(place).map(str::to_owned),
            rule: rule.clone(),
            position: self.replaced(place),
        };
        self.rules().iter().enumerate().map(effective).collect()
    }

    /// The position of the policy's own rule that the rule at `position` replaces, if there is one. Without an override
    /// that is the rule itself.
    pub(crate) fn replaced(&self, position: usize) -> Option<usize> {
        if self.inner.replaced.is_empty() { Some(position) } else { self.inner.replaced.get(position).copied()? }
    }

    fn variant(&self, inner: Inner) -> Self {
        Self { inner: Shared::counted(Inner { origin: Some(self.origin().clone()), ..inner }) }
    }

    /// Returns the same policy with rules that differ only in their numbers.
    fn with_rules(&self, rules: Box<[Rule]>) -> Inner {
        let regroup =
            |group: &RuleGroup| group.with_rules(group.positions.iter().map(|&at| rules[at].clone()).collect());
        let groups = self.groups().iter().map(regroup).collect();
        let Inner { name, ban, settings, replaced, .. } = &*self.inner;
        Inner::from_parts(name.clone(), rules, *ban, groups, *settings, replaced.clone())
    }
}

#[cfg(test)]
mod tests;
