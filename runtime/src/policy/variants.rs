//! Variants of a policy: with other counts, or with other rules on the main subject.

use tallygate_rules::Rule;

use super::rule_group::RuleGroup;
use super::{Inner, Policy};

impl Policy {
    /// Returns the same policy with other counts: the first for its first rule, and so on; rules beyond keep theirs.
    ///
    /// It has the name and the tallies of this one, so each call may have the counts that its caller has paid for. A count of
    /// 0 closes the door: every call is denied, and none can ever be admitted. A count that is too great for its algorithm is
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
    /// let (limiter, alice) = (Limiter::in_memory(), Subject::of("alice"));
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

    /// Returns the same policy with other rules on the main subject, which are sound.
    ///
    /// They take the places of its own, one by one, so that what is left of the others stays where it was. One that is like
    /// one of its own has the name of that.
    pub(crate) fn with_rules(&self, rules: &[Rule]) -> Self {
        let mut rules = rules.iter().map(|rule| {
            let like = self.position_like(rule);
            let name = like.and_then(|at| self.inner.rules[at].name()).filter(|_| rule.name().is_none());
            let rule = rule.clone();
            (None, name.map_or(rule.clone(), |name| rule.named(name.to_owned())), like)
        });
        let replaced = self.rules().iter().enumerate().filter_map(|(at, own)| match self.label(at) {
            Some(label) => Some((Some(label), own.clone(), Some(at))),
            None => rules.next(),
        });
        let mut replaced: Vec<_> = replaced.collect();
        replaced.extend(rules);
        let (rules, replaced): (Vec<_>, Vec<_>) =
            replaced.into_iter().map(|(label, rule, replaced)| ((label, rule), replaced)).unzip();
        Self::new(self.inner.name.clone(), rules, self.inner.ban, replaced.into())
    }

    /// Where the rule on the main subject stands that counts as this one does, its count aside.
    fn position_like(&self, rule: &Rule) -> Option<usize> {
        let main = self.groups().iter().filter(|group| group.label.is_none());
        let mut own = main.flat_map(|group| group.positions.iter().zip(&group.rules));
        own.find(|(_, own)| own.has_same_window(rule)).map(|(&at, _)| at)
    }

    /// The position of the policy's own rule that the rule at `position` stands for, if there is one. Without an
    /// override that is the rule itself.
    pub(crate) fn replaced(&self, position: usize) -> Option<usize> {
        if self.inner.replaced.is_empty() { Some(position) } else { self.inner.replaced.get(position).copied()? }
    }

    /// The label of the subject that a rule counts, unless that is the main one.
    fn label(&self, position: usize) -> Option<String> {
        let group = self.groups().iter().find(|group| group.positions.contains(&position))?;
        group.label.as_deref().map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::Ban;

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
    fn other_rules_on_the_main_subject_leave_the_other_subjects_and_the_ban_alone() {
        let rule = |count, secs| Rule::sliding_window(count, Duration::from_secs(secs));
        let ban = Ban::new(3, Duration::from_secs(60), Duration::from_secs(600));
        let builder = Policy::builder("sms").rule_on("ip", rule(9, 60)).rule(rule(1, 60)).rule_on("ip", rule(99, 3600));
        let policy = builder.ban(ban).build().unwrap();
        let other = policy.with_rules(&[rule(2, 120), rule(3, 240)]);
        assert_eq!(other.rules(), [rule(9, 60), rule(2, 120), rule(99, 3600), rule(3, 240)]);
        assert_eq!((other.ban(), other.groups().len()), (Some(ban), 2));
        assert_eq!(other.groups()[1].segment, policy.groups()[1].segment);
        assert_ne!(other.groups()[0].segment, policy.groups()[0].segment);
        assert_eq!(other.escaped_name(), "sms");
    }

    #[test]
    fn a_rule_that_stands_in_for_one_like_it_has_its_name_and_is_known_as_it() {
        let minute = Duration::from_secs(60);
        let own = [Rule::sliding_window(1, minute).named("short"), Rule::token_bucket(5, 2 * minute).named("steady")];
        let policy = Policy::builder("sms").rule(Rule::duplicate(minute / 12)).rules(own).build().unwrap();
        let other = policy.with_rules(&[
            Rule::sliding_window(9, 2 * minute),
            Rule::token_bucket(7, 2 * minute),
            Rule::sliding_window(3, minute),
        ]);
        let names: Vec<_> = other.rules().iter().map(Rule::name).collect();
        assert_eq!(names, [None, Some("steady"), Some("short")]);
        assert_eq!([0, 1, 2, 3].map(|at| other.replaced(at)), [None, Some(2), Some(1), None]);
        assert_eq!([0, 1, 2].map(|at| policy.replaced(at)), [Some(0), Some(1), Some(2)]);
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
