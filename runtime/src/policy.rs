//! A policy: the named, ordered rules of one function.

pub(crate) mod group;
#[cfg(feature = "cron")]
pub(crate) mod ticks;

use std::borrow::Cow;
use std::sync::Arc;

use tallygate_rules::{Rule, validate};

use self::group::Group;
use crate::Error;
use crate::key::policy_segment;

/// A named, ordered list of rules that decide a call together.
///
/// Cloning is cheap: clones share the rules.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tallygate::{Policy, Rule};
///
/// let policy = Policy::builder("sms")
///     .rule(Rule::sliding_window(1, Duration::from_secs(60)))
///     .rule(Rule::sliding_window(10, Duration::from_secs(86_400)))
///     .build()?;
/// assert_eq!(policy.rules().len(), 2);
/// # Ok::<(), tallygate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Policy {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    identity: Arc<Identity>,
    rules: Box<[Rule]>,
    group: Group,
}

/// What does not change with the counts.
#[derive(Debug)]
struct Identity {
    name: Cow<'static, str>,
    segment: String,
    #[cfg(feature = "cron")]
    ticks: ticks::Ticks,
}

impl Policy {
    /// Starts a policy of that name. Policies of one name share their tallies.
    pub fn builder(name: impl Into<Cow<'static, str>>) -> PolicyBuilder {
        PolicyBuilder { name: name.into(), rules: Vec::new() }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.identity.name
    }

    /// Returns the rules, in the order they were given.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.inner.rules
    }

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
        let group = self.group().with_counts(&rules);
        Self::of(Arc::clone(&self.inner.identity), rules, group)
    }

    fn of(identity: Arc<Identity>, rules: Box<[Rule]>, group: Group) -> Self {
        Self { inner: Arc::new(Inner { identity, rules, group }) }
    }

    pub(crate) fn group(&self) -> &Group {
        &self.inner.group
    }

    #[cfg(feature = "cron")]
    pub(crate) fn ticks(&self) -> &ticks::Ticks {
        &self.inner.identity.ticks
    }

    /// The name and the layout of the tallies, as they stand in keys.
    pub(crate) fn segment(&self) -> &str {
        &self.inner.identity.segment
    }
}

/// Builds a [`Policy`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct PolicyBuilder {
    name: Cow<'static, str>,
    rules: Vec<Rule>,
}

impl PolicyBuilder {
    /// Adds a rule.
    pub fn rule(mut self, rule: impl Into<Rule>) -> Self {
        self.rules.push(rule.into());
        self
    }

    /// Adds the given rules.
    pub fn rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Validates the policy.
    ///
    /// # Errors
    ///
    /// An empty name, or any mistake in the rules that the attribute would refuse when compiling; all are named.
    pub fn build(self) -> Result<Policy, Error> {
        if self.name.is_empty() {
            return Err(Error::new("`name` of a policy must not be empty, like `Policy::builder(\"sms\")`"));
        }
        validate(&self.rules).map_err(|mistakes| Error::rules(&self.name, &mistakes))?;
        let group = Group::new(&self.rules);
        let identity = Arc::new(Identity {
            segment: policy_segment(&self.name) + &group.layout,
            name: self.name,
            #[cfg(feature = "cron")]
            ticks: ticks::Ticks::new(&self.rules),
        });
        Ok(Policy::of(identity, self.rules.into(), group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_mistaken_policy_says_its_name_and_every_mistake() {
        let minute = Duration::from_secs(60);
        let mistaken =
            Policy::builder("sms").rule(Rule::sliding_window(0, minute)).rule(Rule::sliding_window(1, Duration::ZERO));
        let text = mistaken.build().unwrap_err().to_string();
        assert!(text.starts_with("policy `sms`: rule 0: `count` must be at least 1"), "{text}");
        assert!(text.contains("rule 1: `per` must be longer than zero"), "{text}");
    }

    #[test]
    fn other_counts_change_neither_name_nor_tallies() {
        let minute = Duration::from_secs(60);
        let rules = [Rule::sliding_window(1, minute), Rule::sliding_counter(1, minute), Rule::token_bucket(1, minute)];
        let policy = Policy::builder("sms").rules(rules).build().unwrap();
        let other = policy.with_counts([u64::MAX, u64::MAX]);
        assert_eq!((other.name(), other.segment()), (policy.name(), policy.segment()));
        assert_eq!(other.rules().iter().map(Rule::count).collect::<Vec<_>>(), [1_000_000, 1 << 26, 1]);
    }

    #[test]
    fn any_counts_leave_a_policy_sound() {
        let minute = Duration::from_secs(60);
        let bucket = || tallygate_rules::TokenBucket::new(1, minute);
        for rule in [bucket(), bucket().capacity(9), bucket().capacity(9).initial(9)].map(Rule::from) {
            let policy = Policy::builder("sms").rule(rule).build().unwrap();
            assert!(validate(policy.with_counts([u64::MAX]).rules()).is_ok());
            assert_eq!(policy.with_counts([0]).rules()[0].capacity(), Some(0));
        }
    }

    #[test]
    fn a_policy_needs_a_name_and_a_rule() {
        assert!(Policy::builder("").build().unwrap_err().to_string().contains("`name`"));
        assert!(Policy::builder("sms").build().unwrap_err().to_string().contains("at least one rule"));
    }
}
