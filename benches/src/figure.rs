//! A figure: what was measured, against what, and what it must reach.

use serde::Serialize;

use crate::duel::{Duel, Spread};

/// One line of the report.
#[derive(Serialize)]
pub(crate) struct Figure {
    what: &'static str,
    /// Of `ours` and `peer`.
    unit: &'static str,
    ours: f64,
    peer: f64,
    against: &'static str,
    /// What counts: a ratio, unless its unit says otherwise.
    value: Spread,
    value_unit: &'static str,
    must: Option<Bound>,
    reached: Option<bool>,
}

/// What a figure must reach; without one it is there for comparison.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Figure {
    /// Compares by ratio.
    pub(crate) fn ratio(what: &'static str, unit: &'static str, against: &'static str, duel: &Duel) -> Self {
        Self::new(what, unit, against, duel, duel.ratio(), "×")
    }

    /// Compares by difference, in the unit of what was measured.
    pub(crate) fn difference(what: &'static str, unit: &'static str, against: &'static str, duel: &Duel) -> Self {
        Self::new(what, unit, against, duel, duel.difference(), unit)
    }

    /// Says what ours is; the peer's is there for comparison.
    pub(crate) fn alone(what: &'static str, unit: &'static str, against: &'static str, duel: &Duel) -> Self {
        let [ours, _] = duel.each();
        Self::new(what, unit, against, duel, ours, unit)
    }

    fn new(
        what: &'static str,
        unit: &'static str,
        against: &'static str,
        duel: &Duel,
        value: Spread,
        value_unit: &'static str,
    ) -> Self {
        let [ours, peer] = duel.each().map(|spread| spread.median);
        Self { what, unit, ours, peer, against, value, value_unit, must: None, reached: None }
    }

    pub(crate) fn at_most(self, bound: f64) -> Self {
        let reached = self.value.median <= bound;
        Self { must: Some(Bound::AtMost(bound)), reached: Some(reached), ..self }
    }

    pub(crate) fn at_least(self, bound: f64) -> Self {
        let reached = self.value.median >= bound;
        Self { must: Some(Bound::AtLeast(bound)), reached: Some(reached), ..self }
    }

    /// Returns the cells of its row, as [`HEAD`] names them.
    pub(crate) fn row(&self) -> [String; HEAD.len()] {
        let amount = |amount: f64| format!("{} {}", number(amount), self.unit);
        let Spread { low, median, high } = self.value;
        [
            self.what.to_owned(),
            amount(self.ours),
            format!("{}: {}", self.against, amount(self.peer)),
            format!("{} {} ({} … {})", number(median), self.value_unit, number(low), number(high)),
            self.must.map_or(String::new(), |must| match must {
                Bound::AtMost(bound) => format!("≤ {bound} {}", self.value_unit),
                Bound::AtLeast(bound) => format!("≥ {bound} {}", self.value_unit),
            }),
            self.reached.map_or("", |reached| if reached { "yes" } else { "**no**" }).to_owned(),
        ]
    }
}

/// What the cells of a row are.
pub(crate) const HEAD: [&str; 6] = ["figure", "ours", "peer", "ours to peer (middle half)", "must reach", "reached"];

/// Three digits that count, or all of a large number.
fn number(number: f64) -> String {
    match number.abs() {
        ..10.0 => format!("{number:.2}"),
        10.0..100.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}
