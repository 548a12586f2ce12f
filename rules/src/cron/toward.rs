//! The direction of a search through time.

/// The direction of a search. The same search finds the last tick and the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Toward {
    Earlier,
    Later,
}

impl Toward {
    /// Orders two ends of a range by which one the search meets first.
    pub(super) fn order<T: Ord>(self, earlier: T, later: T) -> (T, T) {
        match self {
            Self::Earlier => (later, earlier),
            Self::Later => (earlier, later),
        }
    }

    /// Returns whether the search meets `one` after `other`.
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
