//! The algorithms by which rules count.

use std::time::Duration;

use crate::bucket::TokenBucket;
#[cfg(feature = "cron")]
use crate::cron::Schedule;

/// How a rule counts.
///
/// Times are whole microseconds. Each decision reads the clock of the storage once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Admits a call when the weight admitted in `(now − per, now]` plus its own cost is at most the count.
    ///
    /// The exact sliding window, also known as a sliding log: no window of length `per`, wherever it starts, contains
    /// more than the count. It stores each call that it admits, with its weight.
    SlidingWindow {
        /// The length of the window.
        per: Duration,
    },
    /// Admits a call when the weight of the current slot, plus the weight of the slot before in proportion to how much of
    /// it the window still covers, plus the call's own cost is at most the count.
    ///
    /// The approximate sliding window of constant memory, also known as a sliding window counter. Slots of length `per`
    /// begin at multiples of `per` since 1970.
    SlidingCounter {
        /// The length of a slot, and of the window.
        per: Duration,
    },
    /// Admits a call when the weight since the window opened plus its own cost is at most the count.
    ///
    /// A window opens at the first hit and lasts `per`.
    FixedWindow {
        /// The length of a window.
        per: Duration,
    },
    /// Admits a call when the weight since the last tick of the schedule plus its own cost is at most the count.
    #[cfg(feature = "cron")]
    Cron {
        /// The schedule: each tick starts a new window.
        schedule: Schedule,
    },
    /// Admits a call when the bucket holds as many tokens as it costs.
    TokenBucket(TokenBucket),
    /// Admits a call when fewer than the count are running, whatever they cost.
    ///
    /// Each call that is admitted takes a lease, and gives it back when it is over. The lease of a call that takes longer is
    /// renewed. So a lease ends by itself only if its process has died, or could not reach the store for so long.
    Concurrency {
        /// How long a lease lasts that is not renewed.
        lease: Duration,
    },
}

/// What a denial by a rule means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Too many calls.
    Limit,
    /// The same call again: the rule is `prevent_duplicate`. It counts calls and ignores their cost.
    Duplicate,
    /// Too many concurrent calls. It counts calls and ignores their cost.
    Concurrency,
}
