//! Variants of a policy: with other counts.

use std::borrow::Cow;
use std::num::NonZeroU64;

use tallygate_rules::Rule;

#[cfg(feature = "web")]
use super::registry;
use super::rule_group::RuleGroup;
#[cfg(feature = "config")]
use super::settings::PolicySettings;
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
        let inner = Inner { origin: Some(self.origin().clone()), ..self.with_rules(rules) };
        Self { inner: Shared::counted(inner) }
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
        let Inner { name, rules, ban, groups, settings, replaced, .. } = &*self.inner;
        let settings = PolicySettings {
            on_outage: given.on_outage.or(settings.on_outage),
            deadline: given.deadline.or(settings.deadline),
            warn_at: given.warn_at.or(settings.warn_at),
        };
        let inner = Inner::from_parts(name.clone(), rules.clone(), *ban, groups.clone(), settings, replaced.clone());
        Self { inner: Shared::counted(Inner { origin: Some(self.origin().clone()), ..inner }) }
    }

    /// Returns the same policy, of which this is how its subjects are written. It is known to this process like one that was
    /// built, as it may be all that is left of that.
    #[cfg(feature = "web")]
    pub(crate) fn with_templates(&self, templates: Templates) -> Self {
        let Inner { name, rules, ban, groups, settings, replaced, .. } = &*self.inner;
        let inner = Inner::from_parts(name.clone(), rules.clone(), *ban, groups.clone(), *settings, replaced.clone());
        let policy = Self { inner: Shared::counted(Inner { templates, ..inner }) };
        registry::register(&policy);
        policy
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
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn other_counts_change_neither_name_nor_tallies() {
        let minute = Duration::from_secs(60);
        let rules =
            [Rule::sliding_window(1, minute), Rule::sliding_counter(1, minute), Rule::token_bucket(2, 2 * minute)];
        let policy = Policy::builder("sms").rules(rules).build().unwrap();
        let other = policy.with_counts([u64::MAX, u64::MAX]);
        assert_eq!((other.name(), &other.groups()[0].segment), (policy.name(), &policy.groups()[0].segment));
        assert_eq!(other.rules().iter().map(Rule::count).collect::<Vec<_>>(), [1 << 31, 1 << 26, 2]);
    }

    #[test]
    fn any_counts_leave_a_policy_sound() {
        let minute = Duration::from_secs(60);
        let bucket = tallygate_rules::TokenBucket::new(minute);
        for bucket in [bucket, bucket.with_capacity(9), bucket.with_capacity(9).with_initial(9)] {
            let rule = Rule::from_bucket(1, bucket);
            let policy = Policy::builder("sms").rule(rule).build().unwrap();
            assert!(
                tallygate_rules::validate(policy.with_counts([u64::MAX]).rules(), tallygate_rules::Costs::Any).is_ok()
            );
            assert_eq!(policy.with_counts([0]).rules()[0].capacity(), Some(0));
        }
    }
}
