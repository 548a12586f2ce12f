//! The plans of a policy: counts by name.

use std::collections::BTreeMap;

use super::lines::Lines;
use super::table::Table;
use crate::error::Place;

const PLANS: &str = "plans = { free = 100, paid = 10000 }";

/// The plans of a policy: counts by name.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    counts: BTreeMap<String, u64>,
    /// The place of the plans; `None` if the file has none.
    pub(super) place: Option<Place>,
}

impl Plans {
    /// Takes them out of the table of a policy.
    pub(super) fn take(policy: &mut Table<'_>, lines: &mut Lines<'_>) -> Self {
        let Some(table) = policy.table("plans", PLANS, lines) else { return Self::default() };
        let place = table.place;
        if table.is_empty() {
            lines.report(place, format!("`plans` must not be empty, like `{PLANS}`"));
        }
        Self { counts: table.numbers(lines), place: Some(place) }
    }

    /// Returns the count of the plan of that name.
    pub(crate) fn count(&self, plan: &str) -> Option<u64> {
        self.counts.get(plan).copied()
    }
}
