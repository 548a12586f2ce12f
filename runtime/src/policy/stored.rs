//! The stored policy: as Redis decides it if calls are taken ahead.

use std::sync::Mutex;
use std::time::Duration;

use tallygate_rules::{MIN_PREFETCH_COUNT, Rule};

use super::rule_group::RuleGroup;
use super::{Ahead, Policy, PolicyInner, Stored};
use crate::lock::lock;

impl Policy {
    /// Returns the time for which calls are [taken ahead](crate::PolicyBuilder::prefetch), if they are.
    #[must_use]
    #[inline]
    pub fn prefetch(&self) -> Option<Duration> {
        self.inner.settings.prefetch
    }

    /// Returns the stored policy, if calls are taken ahead. In memory, the policy itself decides.
    ///
    /// Only the policy and its rules make the windows wider, never the load: a process that checked narrower ones would
    /// drop calls that are still in use.
    #[inline]
    pub(crate) fn stored(&self) -> Option<&Stored> {
        let ahead = self.prefetch()?;
        Some(self.inner.stored.get_or_init(|| self.as_stored(ahead)))
    }

    #[cold]
    fn as_stored(&self, ahead: Duration) -> Stored {
        let groups = RuleGroup::gather_ahead(self.name(), self.groups(), self.origin().groups(), ahead);
        let PolicyInner { name, rules, ban, settings, replaced, trials, .. } = &*self.inner;
        // Each call of a subject with a concurrency limit asks Redis anyway.
        let is_concurrent =
            |label| self.groups().iter().any(|group| group.label == label && group.concurrency().is_some());
        let is_taken = |group: &RuleGroup| {
            group.rules.iter().all(|rule| is_taken_ahead(rule, ahead)) && !is_concurrent(group.label.clone())
        };
        let may_take = !self.inner.settings.takes_nothing_ahead;
        let taken = self.groups().iter().map(|group| may_take && is_taken(group));
        let taken = taken.collect();
        let inner = PolicyInner::from_parts(name.clone(), rules.clone(), *ban, groups, *settings, replaced.clone());
        let policy = self.alike(PolicyInner { trials: trials.clone(), ..inner });
        Stored { policy, ahead: Ahead::new(ahead), taken, rests: Mutex::default() }
    }

    /// Returns the policy for calls on some groups alone. All rules keep their positions.
    fn of_groups(&self, is_asked: &[bool]) -> Self {
        let PolicyInner { name, rules, ban, settings, replaced, .. } = &*self.inner;
        let asked = self.groups().iter().zip(is_asked).filter(|(_, is_asked)| **is_asked);
        let groups: Box<[RuleGroup]> = asked.map(|(group, _)| group.clone()).collect();
        // Only the main subject is banned.
        let ban = ban.filter(|_| groups.first().is_some_and(|group| group.ban.is_some()));
        let inner = PolicyInner::from_parts(name.clone(), rules.clone(), ban, groups, *settings, replaced.clone());
        Self::counted(inner)
    }
}

impl Stored {
    /// Returns the time for which calls of the group are taken ahead; `None` if they are not.
    pub(crate) fn ahead_of(&self, group: usize) -> Option<Ahead> {
        self.taken.get(group).is_some_and(|is_taken| *is_taken).then_some(self.ahead)
    }

    /// Returns the policy of the groups that are asked about. There are rarely more than a few combinations.
    pub(crate) fn rest(&self, is_asked: &[bool]) -> Policy {
        let mut rests = lock(&self.rests);
        if let Some((_, known)) = rests.iter().find(|(known, _)| **known == *is_asked) {
            return known.clone();
        }
        let rest = self.policy.of_groups(is_asked);
        rests.push((is_asked.into(), rest.clone()));
        rest
    }
}

fn is_taken_ahead(rule: &Rule, ahead: Duration) -> bool {
    rule.count() >= MIN_PREFETCH_COUNT && rule.ahead(ahead).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const AHEAD: Duration = Duration::from_millis(100);

    fn policy(rule: Rule) -> Policy {
        Policy::builder("p").rule(rule).prefetch(AHEAD).build().unwrap()
    }

    #[test]
    fn nothing_is_taken_ahead_of_a_subject_with_concurrent_calls() {
        let window = || Rule::sliding_window(1_000, 10 * SECOND);
        let policy = Policy::builder("p")
            .rules([window(), Rule::concurrency(2, SECOND)])
            .rule_on("tenant", window())
            .prefetch(AHEAD)
            .build()
            .unwrap();
        let stored = policy.stored().unwrap();
        let taken = policy.groups().iter().zip(&stored.taken).map(|(group, taken)| (group.label.as_deref(), *taken));
        assert_eq!(taken.collect::<Vec<_>>(), [(None, false), (Some("tenant"), true), (None, false)]);
    }

    fn segment(policy: &Policy) -> &str {
        &policy.groups()[0].segment
    }

    #[test]
    fn what_redis_decides_has_wider_windows_and_tallies_of_its_own_but_shows_the_same_rules() {
        let windows = [
            Rule::sliding_window(100, SECOND),
            Rule::sliding_counter(100, SECOND),
            Rule::fixed_window(100, SECOND),
            Rule::token_bucket(100, SECOND),
        ];
        for rule in windows {
            let policy = policy(rule.clone());
            let stored = policy.stored().unwrap();
            assert_eq!(stored.ahead_of(0), Some(Ahead { us: 100_000, margin_us: 2_000 }));
            assert_eq!(stored.policy.rules(), std::slice::from_ref(&rule));
            assert_eq!(stored.policy.groups()[0].rules, [rule.ahead(AHEAD).unwrap()]);
            assert_ne!(segment(&stored.policy), segment(&policy));
            assert_eq!(stored.policy.escaped_name(), "p");
        }
        let plain = Policy::builder("p").rule(Rule::sliding_window(100, SECOND)).build().unwrap();
        assert!(plain.stored().is_none());
    }

    #[test]
    fn of_several_subjects_those_are_taken_ahead_that_have_nothing_to_be_known_at_once() {
        let window = |count| Rule::sliding_window(count, SECOND);
        let policy = Policy::builder("p").rule_on("tenant", window(100_000)).rule(window(10));
        let policy =
            policy.rule_on("ip", window(100)).rule_on("ip", Rule::duplicate(SECOND)).rule(Rule::concurrency(5, SECOND));
        let policy = policy.prefetch(AHEAD).build().unwrap();
        let stored = policy.stored().unwrap();
        let labels = policy.groups().iter().map(|group| group.label.as_deref());
        let taken: Vec<_> = labels.enumerate().map(|(at, label)| (label, stored.ahead_of(at).is_some())).collect();
        assert_eq!(taken, [(None, false), (Some("tenant"), true), (Some("ip"), false), (None, false)]);
    }

    #[test]
    fn other_counts_keep_the_tallies_and_small_ones_take_nothing() {
        let policy = policy(Rule::sliding_window(100, SECOND));
        let stored = policy.stored().unwrap();
        for (count, takes) in [(700, true), (7, false), (0, false)] {
            let other = policy.with_counts([count]);
            let other = other.stored().unwrap();
            assert_eq!(segment(&other.policy), segment(&stored.policy));
            assert_eq!(other.ahead_of(0).is_some(), takes);
        }
    }
}
