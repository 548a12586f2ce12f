//! A policy: the named, ordered rules of one function.

mod builder;
pub(crate) mod group;
mod other;
#[cfg(feature = "cron")]
pub(crate) mod ticks;

use std::borrow::Cow;
use std::sync::Arc;

use tallygate_rules::{Ban, Rule};

pub use self::builder::PolicyBuilder;
use self::group::Group;
#[cfg(feature = "metrics")]
use crate::observe::meters::Meters;

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
    rules: Box<[Rule]>,
    ban: Option<Ban>,
    groups: Box<[Group]>,
    /// Where rules stand in for others: the position that each had among those, or that of the one it is like. Else empty.
    written: Box<[Option<usize>]>,
    #[cfg(feature = "metrics")]
    meters: Meters,
}

impl Policy {
    /// Starts a policy of that name. Policies of one name share their tallies.
    pub fn builder(name: impl Into<Cow<'static, str>>) -> PolicyBuilder {
        PolicyBuilder::new(name.into())
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

    /// Returns what becomes of a subject that goes on being denied.
    #[must_use]
    pub fn ban(&self) -> Option<Ban> {
        self.inner.ban
    }

    /// Whether it is a clone of the other, and so has the same counts.
    #[inline]
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Whether it decides as the other does.
    #[cfg(feature = "redis")]
    pub(crate) fn has_rules_of(&self, other: &Self) -> bool {
        let alike = |(one, other): (&Group, &Group)| one.label == other.label && one.rules == other.rules;
        let (own, others) = (self.groups(), other.groups());
        self.is(other) || own.len() == others.len() && own.iter().zip(others).all(alike)
    }

    /// Whether a denial that this process has seen may answer for the next ones. A ban counts each of them.
    #[cfg(feature = "redis")]
    pub(crate) fn remembers_denials(&self) -> bool {
        self.inner.ban.is_none()
    }

    /// The name as it stands in keys.
    pub(crate) fn escaped_name(&self) -> &str {
        // What follows it begins with a character that is escaped in names.
        let segment = self.groups().first().map_or("", |group| &*group.segment);
        segment.split(['/', '=']).next().unwrap_or_default()
    }

    fn new(
        name: Cow<'static, str>,
        rules: Vec<(Option<String>, Rule)>,
        ban: Option<Ban>,
        written: Box<[Option<usize>]>,
    ) -> Self {
        let groups = Group::gather(&name, &rules, ban).into();
        let rules = rules.into_iter().map(|(_, rule)| rule).collect();
        Self::from_parts(name, rules, ban, groups, written)
    }

    fn from_parts(
        name: Cow<'static, str>,
        rules: Box<[Rule]>,
        ban: Option<Ban>,
        groups: Box<[Group]>,
        written: Box<[Option<usize>]>,
    ) -> Self {
        #[cfg(feature = "metrics")]
        let meters = Meters::new(rules.len());
        let inner = Inner {
            name,
            rules,
            ban,
            groups,
            written,
            #[cfg(feature = "metrics")]
            meters,
        };
        Self { inner: Arc::new(inner) }
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn meters(&self) -> &Meters {
        &self.inner.meters
    }

    /// The rules by the subject that they count: one tally each.
    #[inline]
    pub(crate) fn groups(&self) -> &[Group] {
        &self.inner.groups
    }

    /// The position of a rule, given its number across the groups.
    pub(crate) fn position(&self, number: usize) -> usize {
        if self.inner.groups.len() == 1 {
            return number;
        }
        let positions = self.inner.groups.iter().flat_map(|group| group.positions.iter());
        positions.copied().nth(number).unwrap_or(number)
    }
}
