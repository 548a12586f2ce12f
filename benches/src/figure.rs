//! A figure: what was measured, against what, and what it must reach.

use serde::Serialize;

use crate::duel::{Duel, Spread};

/// One line of the report.
#[derive(Serialize)]
pub(crate) struct Figure {
    what: String,
    against: String,
    /// `None` if it was not measured.
    measured: Option<Measured>,
    /// Why it was not measured.
    skipped: Option<String>,
    must: Option<Bound>,
}

#[derive(Serialize)]
struct Measured {
    ours: f64,
    /// The unit of `ours` and of the peer.
    unit: &'static str,
    /// The compared value: a ratio, unless its unit says otherwise.
    value: Spread,
    value_unit: &'static str,
    peer: Option<Peer>,
}

#[derive(Serialize)]
struct Peer {
    value: f64,
    /// The ratio of the peer to itself.
    control: Spread,
}

/// The goal of a figure. Without one, it is there for comparison.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Figure {
    /// Compares by ratio.
    pub(crate) fn ratio(what: &str, unit: &'static str, against: &str, duel: &Duel) -> Self {
        Self::new(what, unit, against, duel, duel.ratio(), "×")
    }

    /// Compares by difference, in the unit of what was measured.
    pub(crate) fn difference(what: &str, unit: &'static str, against: &str, duel: &Duel) -> Self {
        Self::new(what, unit, against, duel, duel.difference(), unit)
    }

    /// Reports ours; the peer is there for comparison.
    pub(crate) fn alone(what: &str, unit: &'static str, against: &str, duel: &Duel) -> Self {
        let [ours, _] = duel.each();
        Self::new(what, unit, against, duel, ours, unit)
    }

    /// Reports ours without a peer, and which of several cases it was.
    pub(crate) fn amount(what: &str, unit: &'static str, which: &str, value: Spread) -> Self {
        let measured = Measured { ours: value.median, unit, value, value_unit: unit, peer: None };
        Self { what: what.to_owned(), against: which.to_owned(), measured: Some(measured), skipped: None, must: None }
    }

    /// Records why it was not measured.
    pub(crate) fn skipped(what: &str, against: &str, why: &str) -> Self {
        let (what, against) = (what.to_owned(), against.to_owned());
        Self { what, against, measured: None, skipped: Some(why.to_owned()), must: None }
    }

    fn new(
        what: &str,
        unit: &'static str,
        against: &str,
        duel: &Duel,
        value: Spread,
        value_unit: &'static str,
    ) -> Self {
        let [ours, peer] = duel.each().map(|spread| spread.median);
        let peer = Some(Peer { value: peer, control: duel.control() });
        let measured = Measured { ours, unit, value, value_unit, peer };
        let (what, against) = (what.to_owned(), against.to_owned());
        Self { what, against, measured: Some(measured), skipped: None, must: None }
    }

    pub(crate) fn at_most(self, bound: f64) -> Self {
        Self { must: Some(Bound::AtMost(bound)), ..self }
    }

    pub(crate) fn at_least(self, bound: f64) -> Self {
        Self { must: Some(Bound::AtLeast(bound)), ..self }
    }

    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// Returns ours.
    pub(crate) fn measured(&self) -> Option<f64> {
        Some(self.measured.as_ref()?.ours)
    }

    /// Returns the cells of its row, in the order of [`HEAD`].
    pub(crate) fn row(&self) -> [String; HEAD.len()] {
        let Some(measured) = &self.measured else {
            let why = self.skipped.clone().unwrap_or_default();
            return [
                self.what.clone(),
                String::new(),
                self.against.clone(),
                why,
                String::new(),
                String::new(),
                String::new(),
            ];
        };
        let amount = |amount: f64| format!("{} {}", number(amount), measured.unit);
        [
            self.what.clone(),
            amount(measured.ours),
            measured
                .peer
                .as_ref()
                .map_or(self.against.clone(), |peer| format!("{}: {}", self.against, amount(peer.value))),
            format!("{} {} {}", number(measured.value.median), measured.value_unit, middle_half(measured.value)),
            measured.peer.as_ref().map_or(String::new(), |Peer { control, .. }| {
                format!("{} {}", number(control.median), middle_half(*control))
            }),
            self.must.map_or(String::new(), |must| match must {
                Bound::AtMost(bound) => format!("≤ {bound} {}", measured.value_unit),
                Bound::AtLeast(bound) => format!("≥ {bound} {}", measured.value_unit),
            }),
            self.must
                .map_or("", |must| if must.is_reached(measured.value.median) { "yes" } else { "**no**" })
                .to_owned(),
        ]
    }
}

impl Bound {
    fn is_reached(self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= bound,
            Self::AtLeast(bound) => value >= bound,
        }
    }
}

/// The head of the table.
pub(crate) const HEAD: [&str; 7] =
    ["figure", "ours", "peer", "ours to peer (middle half)", "peer to itself", "must reach", "reached"];

fn middle_half(Spread { low, high, .. }: Spread) -> String {
    format!("({} … {})", number(low), number(high))
}

/// Three significant digits, or all digits of a large number.
fn number(number: f64) -> String {
    match number.abs() {
        ..10.0 => format!("{number:.2}"),
        10.0..100.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}
