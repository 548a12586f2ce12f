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
    name: Cow<'static, str>,
    segment: String,
    rules: Box<[Rule]>,
    group: Group,
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
        &self.inner.name
    }

    /// Returns the rules, in the order they were given.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.inner.rules
    }

    /// Returns the same policy with other rules, which are sound.
    pub(crate) fn with_rules(&self, rules: &[Rule]) -> Self {
        Self::new(self.inner.name.clone(), rules.to_vec())
    }

    /// Whether it is a clone of the other.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Whether it decides as the other does.
    #[cfg(feature = "redis")]
    pub(crate) fn has_rules_of(&self, other: &Self) -> bool {
        self.is(other) || self.inner.rules == other.inner.rules
    }

    /// Whether a denial that this process has seen may answer for the next ones.
    #[cfg(feature = "redis")]
    #[allow(clippy::unused_self, reason = "a policy has no other reason yet to ask the storage about a denied call")]
    pub(crate) fn remembers_denials(&self) -> bool {
        true
    }

    /// The name as it stands in keys.
    pub(crate) fn escaped_name(&self) -> &str {
        // What follows it begins with a character that is escaped in names.
        self.inner.segment.split(['/', '=']).next().unwrap_or_default()
    }

    fn new(name: Cow<'static, str>, rules: Vec<Rule>) -> Self {
        let group = Group::new(&rules);
        let segment = policy_segment(&name) + &group.layout;
        #[cfg(feature = "cron")]
        let ticks = ticks::Ticks::new(&rules);
        Self {
            inner: Arc::new(Inner {
                name,
                segment,
                group,
                #[cfg(feature = "cron")]
                ticks,
                rules: rules.into(),
            }),
        }
    }

    pub(crate) fn group(&self) -> &Group {
        &self.inner.group
    }

    #[cfg(feature = "cron")]
    pub(crate) fn ticks(&self) -> &ticks::Ticks {
        &self.inner.ticks
    }

    /// The name and the layout of the tallies, as they stand in keys.
    pub(crate) fn segment(&self) -> &str {
        &self.inner.segment
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
        Ok(Policy::new(self.name, self.rules))
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
    fn a_policy_needs_a_name_and_a_rule() {
        assert!(Policy::builder("").build().unwrap_err().to_string().contains("`name`"));
        assert!(Policy::builder("sms").build().unwrap_err().to_string().contains("at least one rule"));
    }
}
