//! A set of small numbers, like the values of a cron field, and the direction in which it is searched.

use std::ops::{BitAnd, BitOr};

/// A set of numbers from 0 to 62.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Bits(u64);

impl Bits {
    pub(super) fn one(bit: i8) -> Self {
        Self(1 << bit)
    }

    pub(super) fn range(from: i8, to: i8) -> Self {
        Self(u64::MAX).since(from, SearchDirection::Later).since(to, SearchDirection::Earlier)
    }

    pub(super) fn is_single(self) -> bool {
        self.0.is_power_of_two()
    }

    pub(super) fn has(self, bit: i8) -> bool {
        self.0 >> bit & 1 == 1
    }

    /// Returns the first number in a direction.
    pub(super) fn first(self, direction: SearchDirection) -> Option<i8> {
        let bit = match direction {
            SearchDirection::Earlier => 63_u32.checked_sub(self.0.leading_zeros())?,
            SearchDirection::Later => self.0.trailing_zeros(),
        };
        i8::try_from(bit).ok().filter(|&bit| bit < 64)
    }

    /// Returns the numbers from `at` on, in a direction.
    pub(super) fn since(self, at: i8, direction: SearchDirection) -> Self {
        Self(match direction {
            SearchDirection::Earlier => self.0 & !(u64::MAX << (at + 1)),
            SearchDirection::Later => self.0 & u64::MAX << at,
        })
    }

    /// Returns the numbers after `at`, in a direction.
    pub(super) fn beyond(self, at: i8, direction: SearchDirection) -> Self {
        self.since(at + direction.step(), direction)
    }

    pub(super) fn iter(self) -> impl Iterator<Item = i8> {
        (0..64).filter(move |&bit| self.has(bit))
    }
}

impl FromIterator<i8> for Bits {
    fn from_iter<I: IntoIterator<Item = i8>>(bits: I) -> Self {
        bits.into_iter().fold(Self::default(), |set, bit| set | Self::one(bit))
    }
}

impl BitOr for Bits {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Bits {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// The direction of a search. One search finds both the last tick and the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchDirection {
    Earlier,
    Later,
}

impl SearchDirection {
    /// Orders the two ends of a range as the search meets them.
    pub(super) fn order<T: Ord>(self, earlier: T, later: T) -> (T, T) {
        match self {
            Self::Earlier => (later, earlier),
            Self::Later => (earlier, later),
        }
    }

    pub(super) fn is_past<T: Ord + Copy>(self, one: T, other: T) -> bool {
        match self {
            Self::Earlier => one < other,
            Self::Later => one > other,
        }
    }

    /// Returns the step to the neighbour: −1 or 1.
    pub(super) const fn step(self) -> i8 {
        match self {
            Self::Earlier => -1,
            Self::Later => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cron::bits::SearchDirection::{Earlier, Later};

    #[test]
    fn a_set_is_searched_in_both_directions() {
        let set: Bits = [0, 5, 59].into_iter().collect();
        assert_eq!(set.first(Later), Some(0));
        assert_eq!(set.first(Earlier), Some(59));
        assert_eq!(set.since(5, Later).first(Later), Some(5));
        assert_eq!(set.since(5, Earlier).first(Earlier), Some(5));
        assert_eq!(set.beyond(5, Later).first(Later), Some(59));
        assert_eq!(set.beyond(5, Earlier).first(Earlier), Some(0));
        assert_eq!(set.beyond(59, Later).first(Later), None);
        assert_eq!(set.beyond(0, Earlier).first(Earlier), None);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 5, 59]);
    }

    #[test]
    fn an_empty_set_has_no_first_number() {
        assert_eq!(Bits::default().first(Later), None);
        assert_eq!(Bits::default().first(Earlier), None);
        assert_eq!(Bits::range(5, 4), Bits::default());
    }
}
