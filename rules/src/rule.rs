//! A rule: a limit, as an algorithm with its parameters.

use std::time::Duration;

/// The window of a `prevent_duplicate` that names none: five seconds.
pub const DUPLICATE_PER: Duration = Duration::from_secs(5);

/// How a rule counts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// Admits a call when the weight admitted in `(now − per, now]` and its own cost are at most the rule's count.
    ///
    /// This is the exact sliding window, also known as a sliding log: in no window of length `per`, wherever it starts,
    /// is more than the count admitted.
    SlidingWindow {
        /// The length of the window.
        per: Duration,
    },
}

/// What the denial of a rule means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// A limit like any other.
    Limit,
    /// A rule in front of the others, that tells a repeated call from too many calls.
    Duplicate,
}

/// A limit on how much one subject may do.
///
/// Building a rule checks nothing: [`validate`](crate::validate) does, for all rules of a policy at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    role: Role,
    algorithm: Algorithm,
    count: u64,
}

impl Rule {
    /// At most `count` in any window of length `per`: the exact sliding window.
    #[must_use]
    pub const fn sliding_window(count: u64, per: Duration) -> Self {
        Self { role: Role::Limit, algorithm: Algorithm::SlidingWindow { per }, count }
    }

    /// One call in any window of length `per`; whatever comes earlier is a duplicate.
    ///
    /// It weighs calls, not their cost: a call of any cost is one call.
    #[must_use]
    pub const fn duplicate(per: Duration) -> Self {
        Self { role: Role::Duplicate, algorithm: Algorithm::SlidingWindow { per }, count: 1 }
    }

    /// Returns what a denial by this rule means.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Returns how this rule counts.
    #[must_use]
    pub const fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// Returns the greatest weight this rule admits in its window.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the length of this rule's window.
    #[must_use]
    pub const fn per(&self) -> Duration {
        match self.algorithm {
            Algorithm::SlidingWindow { per } => per,
        }
    }
}
