//! The counts of a plan.

use std::collections::BTreeMap;

use tallygate_rules::CALLS;
#[cfg(feature = "config")]
use tallygate_rules::Rule;
#[cfg(any(feature = "admin", test))]
use tallygate_rules::check_unit;

/// The counts that a plan of a file gives to rules.
///
/// Read it by [`count_of`](Self::count_of) or [`counts`](Self::counts): files may give counts in further ways later.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PlanCounts {
    /// One count, like `paid = 10_000`, of one rule.
    One(u64),
    /// The counts of rules by the units that they count, like `paid = { calls = 20, tokens = 60_000 }`.
    ByUnit(BTreeMap<String, u64>),
}

impl PlanCounts {
    /// Returns the count of rules in that unit. One count is that of `calls`.
    #[must_use]
    pub fn count_of(&self, unit: &str) -> Option<u64> {
        match self {
            Self::One(count) => (unit == CALLS).then_some(*count),
            Self::ByUnit(counts) => counts.get(unit).copied(),
        }
    }

    /// Returns each count with the unit of its rules; [one count](Self::One) names no unit.
    pub fn counts(&self) -> impl Iterator<Item = (Option<&str>, u64)> {
        let (one, by_unit) = match self {
            Self::One(count) => (Some((None, *count)), None),
            Self::ByUnit(counts) => (None, Some(counts)),
        };
        let by_unit = by_unit.into_iter().flatten();
        one.into_iter().chain(by_unit.map(|(unit, count)| (Some(unit.as_str()), *count)))
    }

    /// Returns the unit of the rule that one count is for: the first of these rules on calls, or else the first one.
    #[cfg(feature = "config")]
    pub(crate) fn unit_of_one<'r>(mut rules: impl Iterator<Item = &'r Rule>) -> &'r str {
        let Some(first) = rules.next() else { return CALLS };
        if rules.any(|rule| rule.counted() == CALLS) { CALLS } else { first.counted() }
    }

    /// Writes `20`, or `calls=20,tokens=60000`, for the registry.
    pub(super) fn write(&self) -> String {
        match self {
            Self::One(count) => count.to_string(),
            Self::ByUnit(counts) => {
                let counts: Vec<_> = counts.iter().map(|(unit, count)| format!("{unit}={count}")).collect();
                counts.join(",")
            }
        }
    }

    /// Reads what [`write`](Self::write) writes.
    #[cfg(any(feature = "admin", test))]
    pub(super) fn read(text: &str) -> Option<Self> {
        if let Ok(count) = text.parse() {
            return Some(Self::One(count));
        }
        let of_unit = |text: &str| {
            let (unit, count) = text.split_once('=')?;
            check_unit(unit).ok()?;
            Some((unit.to_owned(), count.parse().ok()?))
        };
        Some(Self::ByUnit(text.split(',').map(of_unit).collect::<Option<_>>()?))
    }
}
