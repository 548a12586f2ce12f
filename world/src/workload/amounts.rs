//! What calls cost and use in units.

use std::fmt;

/// The units that policies may count beside calls.
pub const UNITS: [&str; 2] = ["tokens", "bytes"];

/// Amounts of units, each in its place in [`UNITS`]: `None` of a unit that is not named.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts([Option<u64>; UNITS.len()]);

impl Amounts {
    /// The amount of a unit, if it is named.
    #[must_use]
    pub fn of(self, unit: &str) -> Option<u64> {
        self.named().find(|(named, _)| *named == unit).map(|(_, amount)| amount)
    }

    /// The units that are named, with their amounts.
    pub fn named(self) -> impl Iterator<Item = (&'static str, u64)> {
        UNITS.into_iter().zip(self.0).filter_map(|(unit, amount)| Some((unit, amount?)))
    }
}

impl FromIterator<(&'static str, Option<u64>)> for Amounts {
    fn from_iter<I: IntoIterator<Item = (&'static str, Option<u64>)>>(amounts: I) -> Self {
        let mut all = Self::default();
        for (unit, amount) in amounts {
            let place = UNITS.iter().position(|known| *known == unit);
            if let Some(own) = place.and_then(|place| all.0.get_mut(place)) {
                *own = amount;
            }
        }
        all
    }
}

impl fmt::Display for Amounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.named().try_for_each(|(unit, amount)| write!(f, " and {amount} {unit}"))
    }
}

impl fmt::Debug for Amounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.named()).finish()
    }
}
