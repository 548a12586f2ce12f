//! The units that a policy counts beside calls, and what a call costs in them.

use std::num::NonZeroU64;
use std::sync::Arc;

use tallygate_rules::{CALLS, Role, Rule};

use super::{Policy, RuleGroup};
use crate::error::BackendError;
#[cfg(any(feature = "client", feature = "web"))]
use crate::error::Error;

/// The cost of a call in a unit of its policy.
pub(crate) type UnitCost = (Arc<str>, u64);

/// What a call costs for one of its subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubjectCost {
    /// Its cost in calls.
    Calls,
    /// Its cost in another unit.
    Unit(u64),
    /// Nothing yet, because it may use something of the unit, which is charged afterwards. It is admitted while there is
    /// anything left.
    Later,
}

impl SubjectCost {
    /// Returns what a call with these costs costs in a unit.
    pub(crate) fn in_unit(unit: &str, given: &[UnitCost]) -> Self {
        let named = given.iter().find(|(named, _)| **named == *unit);
        named.map_or(Self::Later, |(_, cost)| Self::Unit(*cost))
    }

    /// What is charged of a call with this cost in calls.
    #[inline]
    pub(crate) fn charged(self, calls: u64) -> u64 {
        match self {
            Self::Calls => calls,
            Self::Unit(cost) => cost,
            Self::Later => 0,
        }
    }

    /// How much there has to be left for a call with this cost in calls.
    #[inline]
    pub(crate) fn needed(self, calls: u64) -> u64 {
        if self == Self::Later { 1 } else { self.charged(calls) }
    }
}

/// What a call costs in one unit, in one word, so that a check grows by no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupCost(NonZeroU64);

impl GroupCost {
    /// The bits of the cost. The others hold the place of the group after 1.
    const COST_BITS: u32 = 56;

    /// Returns the cost in the unit of the group at this place; `None` for numbers that no usual call has.
    #[inline]
    pub(crate) fn new(place: usize, cost: u64) -> Option<Self> {
        let place = u64::from(u8::try_from(place + 1).ok()?);
        if cost >> Self::COST_BITS > 0 { None } else { NonZeroU64::new(place << Self::COST_BITS | cost).map(Self) }
    }

    /// The place of the group among those of the policy.
    #[inline]
    pub(crate) fn place(self) -> usize {
        (self.0.get() >> Self::COST_BITS) as usize - 1
    }

    #[inline]
    pub(crate) fn cost(self) -> u64 {
        self.0.get() & ((1 << Self::COST_BITS) - 1)
    }
}

impl Policy {
    /// Returns the units that the rules count beside calls, in the order of the rules.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tallygate::{Policy, Rule};
    ///
    /// let minute = Duration::from_secs(60);
    /// let policy = Policy::builder("chat")
    ///     .rule(Rule::sliding_window(60, minute))
    ///     .rule(Rule::sliding_window(20_000, minute).counting("tokens"))
    ///     .build()?;
    /// assert!(policy.units().eq(["tokens"]));
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn units(&self) -> impl Iterator<Item = &str> {
        let units = || self.rules().iter().filter_map(Rule::unit);
        units()
            .enumerate()
            .filter(move |(at, unit)| units().take(*at).all(|other| other != *unit))
            .map(|(_, unit)| unit)
    }

    /// Whether a rule counts another unit than calls.
    #[inline]
    pub(crate) fn has_units(&self) -> bool {
        self.inner.has_units
    }

    /// Returns the place of the first group that counts this unit beside calls, if there is one.
    #[inline]
    pub(crate) fn group_of_unit(&self, unit: &str) -> Option<usize> {
        self.groups().iter().position(|group| group.unit.as_deref() == Some(unit))
    }

    /// Returns the unit of this name as the groups have it; `None` for calls.
    ///
    /// # Errors
    ///
    /// No rule counts that unit.
    pub(crate) fn unit(&self, name: &str) -> Result<Option<Arc<str>>, BackendError> {
        if name == CALLS {
            return Ok(None);
        }
        let trials = self.trials().iter().flat_map(|trial| trial.policy.groups());
        let units = self.groups().iter().chain(trials).filter_map(|group| group.unit.as_ref());
        let unit = { units }.find(|unit| &***unit == name).cloned();
        unit.map(Some).ok_or_else(|| self.unknown_unit(name))
    }

    /// Returns each unit that enforced rules count beside calls, with the index of its first group.
    pub(crate) fn charged_units(&self) -> impl Iterator<Item = (usize, &Arc<str>)> {
        let units =
            || self.groups().iter().enumerate().filter_map(|(index, group)| Some((index, group.unit.as_ref()?)));
        units().filter(move |(index, unit)| units().all(|(other, known)| other >= *index || known != *unit))
    }

    /// Fails if no rule counts what a call costs in that unit. The error names the setting.
    #[cfg(any(feature = "client", feature = "web"))]
    pub(crate) fn check_counted(&self, setting: &str, unit: &str) -> Result<(), Error> {
        let is_uncounted = unit == CALLS && !self.counts_calls();
        let counted = if is_uncounted { Err(self.unknown_unit(unit)) } else { self.unit(unit).map(drop) };
        counted.map_err(|mistake| Error::new(format!("`{setting}`: {mistake}")))
    }

    /// Fails if a call costs more than 1 in calls, and the rules count nothing but other units.
    pub(crate) fn check_cost(&self, cost: u64) -> Result<(), BackendError> {
        if cost > 1 && self.counts_only_units() { Err(self.unknown_unit(CALLS)) } else { Ok(()) }
    }

    /// Whether no rule counts what a call costs in calls, but rules count what it costs in other units.
    pub(crate) fn counts_only_units(&self) -> bool {
        self.has_units() && !self.counts_calls()
    }

    /// Whether a rule counts what a call costs in calls. The others count calls whatever they cost.
    pub(crate) fn counts_calls(&self) -> bool {
        self.rules().iter().any(|rule| rule.role() == Role::Limit && rule.unit().is_none())
    }

    /// Returns what a call costs in each group and then in each trial, by its costs in units. It is empty if no rule counts
    /// a unit.
    #[inline]
    pub(crate) fn costs(&self, given: &[UnitCost]) -> Vec<SubjectCost> {
        if !self.has_units() {
            return Vec::new();
        }
        let trials = self.trials().iter().flat_map(|trial| trial.policy.groups());
        let cost = |group: &RuleGroup| {
            group.unit.as_ref().map_or(SubjectCost::Calls, |unit| SubjectCost::in_unit(unit, given))
        };
        self.groups().iter().chain(trials).map(cost).collect()
    }

    #[cold]
    fn unknown_unit(&self, unit: &str) -> BackendError {
        let calls = self.counts_calls().then_some(CALLS);
        let known: Vec<_> = calls.into_iter().chain(self.units()).map(|unit| format!("`{unit}`")).collect();
        let count = if known.is_empty() { "no costs".to_owned() } else { known.join(" and ") };
        let policy = self.name();
        BackendError::misuse(format!("no rule of policy `{policy}` counts the unit `{unit}`; its rules count {count}"))
    }
}
