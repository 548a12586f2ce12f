//! The counts of a plan.

use std::collections::BTreeMap;

use tallygate_rules::CALLS;
#[cfg(any(feature = "admin", test))]
use tallygate_rules::check_unit;

/// The counts that a plan of a file gives to rules.
#[derive(Clone, Debug, PartialEq, Eq)]
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
