//! A policy: the named, ordered rules of one function.

mod builder;
pub(crate) mod registry;
mod replacement;
mod rule_group;
#[cfg(all(feature = "cron", feature = "redis"))]
mod ticks;
mod variants;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use tallygate_rules::{Ban, Rule};

pub use self::builder::PolicyBuilder;
pub(crate) use self::replacement::Replacement;
pub(crate) use self::rule_group::{LABEL_BYTES, LAYOUT_BYTES, RuleGroup, Window};
use crate::observe::Observed;
#[cfg(feature = "metrics")]
use crate::observe::metrics::PolicyMetrics;

/// A named, ordered list of rules that decide a call together.
///
/// Cloning is cheap: clones share the rules. Two policies are equal if they have the same name, the same rules on the
/// same subjects, and the same ban.
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
#[derive(Clone)]
pub struct Policy {
    inner: Arc<Inner>,
}

struct Inner {
    name: Cow<'static, str>,
    rules: Box<[Rule]>,
    ban: Option<Ban>,
    groups: Box<[RuleGroup]>,
    /// Where an override is in force: the position of the policy's own rule that each rule replaces. Else empty.
    replaced: Box<[Option<usize>]>,
    #[cfg(feature = "metrics")]
    metrics: PolicyMetrics,
}

impl Policy {
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

    /// Returns the ban of subjects that are denied too often, if there is one.
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
    pub(crate) fn has_rules_of(&self, other: &Self) -> bool {
        let alike = |(one, other): (&RuleGroup, &RuleGroup)| one.label == other.label && one.rules == other.rules;
        let (own, others) = (self.groups(), other.groups());
        self.is(other) || own.len() == others.len() && own.iter().zip(others).all(alike)
    }

    /// Whether a cached denial may answer for the next calls. It may not where a ban counts every denial.
    #[cfg(feature = "redis")]
    pub(crate) fn caches_denials(&self) -> bool {
        self.inner.ban.is_none()
    }

    /// The name as it stands in keys.
    pub(crate) fn escaped_name(&self) -> &str {
        // What follows it begins with a character that is escaped in names.
        let segment = self.groups().first().map_or("", |group| &*group.segment);
        segment.split(['/', '=']).next().unwrap_or_default()
    }

    /// Stands for a policy that is refused, so that a call is reported under its name.
    pub(crate) fn without_rules(name: String) -> Self {
        Self::new(name.into(), Vec::new(), None, Box::default())
    }

    fn new(
        name: Cow<'static, str>,
        rules: Vec<(Option<String>, Rule)>,
        ban: Option<Ban>,
        replaced: Box<[Option<usize>]>,
    ) -> Self {
        let groups = RuleGroup::gather(&name, &rules, ban).into();
        let rules = rules.into_iter().map(|(_, rule)| rule).collect();
        Self::from_parts(name, rules, ban, groups, replaced)
    }

    fn from_parts(
        name: Cow<'static, str>,
        rules: Box<[Rule]>,
        ban: Option<Ban>,
        groups: Box<[RuleGroup]>,
        replaced: Box<[Option<usize>]>,
    ) -> Self {
        #[cfg(feature = "metrics")]
        let metrics = PolicyMetrics::new(rules.len());
        let inner = Inner {
            name,
            rules,
            ban,
            groups,
            replaced,
            #[cfg(feature = "metrics")]
            metrics,
        };
        Self { inner: Arc::new(inner) }
    }

    /// What reports need of the policy.
    #[inline]
    pub(crate) fn observed(&self) -> Observed<'_> {
        Observed {
            policy: self.name(),
            #[cfg(feature = "metrics")]
            metrics: &self.inner.metrics,
        }
    }

    /// The rules by the subject that they count: one tally each.
    #[inline]
    pub(crate) fn groups(&self) -> &[RuleGroup] {
        &self.inner.groups
    }

    /// The position of the rule at that place of the groups' rules, one group after the other.
    pub(crate) fn position(&self, place: usize) -> usize {
        if self.inner.groups.len() == 1 {
            return place;
        }
        let positions = self.inner.groups.iter().flat_map(|group| group.positions.iter());
        positions.copied().nth(place).unwrap_or(place)
    }
}

impl PartialEq for Policy {
    fn eq(&self, other: &Self) -> bool {
        // The rules once more, as the groups do not have their order.
        self.is(other)
            || self.name() == other.name()
                && self.ban() == other.ban()
                && self.rules() == other.rules()
                && self.has_rules_of(other)
    }
}

impl Eq for Policy {}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<_> = self.rules().iter().map(ToString::to_string).collect();
        f.debug_struct("Policy").field("name", &self.name()).field("rules", &rules).field("ban", &self.ban()).finish()
    }
}
