//! Variants of a policy: with other counts.

use tallygate_rules::Rule;

use super::rule_group::RuleGroup;
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
        let regroup =
            |group: &RuleGroup| group.with_rules(group.positions.iter().map(|&at| rules[at].clone()).collect());
        let groups = self.groups().iter().map(regroup).collect();
        let Inner { name, ban, .. } = &*self.inner;
        Self::from_parts(name.clone(), rules, *ban, groups, self.inner.replaced.clone())
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
        assert_eq!(other.rules().iter().map(Rule::count).collect::<Vec<_>>(), [1_000_000, 1 << 26, 2]);
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
