//! The direction of a search through time.

/// Which way to look: one search finds the last tick and the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Toward {
    Earlier,
    Later,
}

impl Toward {
    /// The one of two that comes first on the way, followed by the other.
    pub(super) fn order<T: Ord>(self, earlier: T, later: T) -> (T, T) {
        match self {
            Self::Earlier => (later, earlier),
            Self::Later => (earlier, later),
        }
    }

    /// Whether `one` lies beyond `other`.
    pub(super) fn is_past<T: Ord + Copy>(self, one: T, other: T) -> bool {
        match self {
            Self::Earlier => one < other,
            Self::Later => one > other,
        }
    }

    /// The step to the neighbour: minus one or one.
    pub(super) const fn step(self) -> i8 {
        match self {
            Self::Earlier => -1,
            Self::Later => 1,
        }
    }
}
