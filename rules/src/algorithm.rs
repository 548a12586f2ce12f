//! The algorithms by which rules count, and the parameters of a token bucket.

use std::num::NonZeroU64;
use std::time::Duration;

#[cfg(feature = "cron")]
use crate::cron::Schedule;
use crate::limits::{MAX_EXACT, MAX_PER};

/// How a rule counts.
///
/// Times are whole microseconds. A decision reads the clock of the store once.
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
    /// Admits a call when three weights are together at most the count: that of the current slot, that of the slot
    /// before in proportion to how much of it the window still covers, and the call's own cost.
    ///
    /// The approximate sliding window with constant memory, also known as a sliding window counter. Slots of length
    /// `per` begin at multiples of `per` since 1970.
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
        /// The schedule. Each tick starts a new window.
        schedule: Schedule,
    },
    /// Admits a call when the bucket holds as many tokens as it costs.
    TokenBucket(TokenBucket),
    /// Admits a call when fewer than the count are running, whatever they cost.
    ///
    /// Each admitted call takes a lease, renews it while it runs, and gives it back at its end. So a lease only ends by
    /// itself if its process has died, or could not reach the store for that long.
    Concurrency {
        /// The length of a lease that is not renewed.
        lease: Duration,
    },
}

/// The meaning of a denial by a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// The subject makes too many calls.
    Limit,
    /// The call was made before. The rule is `prevent_duplicate`, which counts calls and ignores their cost.
    Duplicate,
    /// Too many calls of the subject are running. The rule counts calls and ignores their cost.
    Concurrency,
}

/// The parameters of a token bucket. The rule's `count` of tokens flows in per `per`, continuously, up to the capacity.
/// A call takes as many tokens as it costs.
///
/// The arithmetic is exact, in integers: a fraction of a token is never lost. An unused bucket holds its initial tokens
/// and does not change until the first admitted call. After `reset_after` without an admitted call it is unused again.
///
/// The count belongs to the rule, and may differ from call to call. A parameter that is not set follows from it: see
/// [`capacity_for`](Self::capacity_for) and the other methods that take a count.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tallygate_rules::{Rule, TokenBucket};
///
/// // Five a second on average, a hundred at once, but only three for a new subject.
/// let bucket = TokenBucket::new(Duration::from_secs(1)).with_capacity(100).with_initial(3);
/// let rule = Rule::from_bucket(5, bucket);
/// assert_eq!(rule.capacity(), Some(100));
/// assert_eq!(rule.to_string(), "5 per 1s burst 100 initial 3");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenBucket {
    per: Duration,
    capacity: Option<u64>,
    initial: Option<u64>,
    reset_after: Option<Duration>,
}

impl TokenBucket {
    /// Returns a bucket into which the rule's `count` of tokens flows per `per`. It holds `count` tokens and is full at
    /// first.
    #[must_use]
    pub const fn new(per: Duration) -> Self {
        Self { per, capacity: None, initial: None, reset_after: None }
    }

    /// Returns the bucket with another capacity: the most tokens that it holds, and that one call can take.
    #[must_use]
    pub const fn with_capacity(self, tokens: u64) -> Self {
        Self { capacity: Some(tokens), ..self }
    }

    /// Returns the bucket with another number of tokens while it is unused. By default, an unused bucket is full.
    #[must_use]
    pub const fn with_initial(self, tokens: u64) -> Self {
        Self { initial: Some(tokens), ..self }
    }

    /// Returns the bucket with another time without an admitted call, after which it is unused again. The default is
    /// the time in which the bucket fills from empty. If counts differ from call to call, the count of the asking call
    /// sets this time, but a store may forget the bucket by the count of the last admitted call.
    #[must_use]
    pub const fn with_reset_after(self, idle: Duration) -> Self {
        Self { reset_after: Some(idle), ..self }
    }

    /// Returns the time in which the rule's `count` of tokens flows in.
    #[must_use]
    pub const fn per(&self) -> Duration {
        self.per
    }

    /// Returns the capacity, or `None` if it follows from the count.
    #[must_use]
    pub const fn capacity(&self) -> Option<u64> {
        self.capacity
    }

    /// Returns the number of tokens in an unused bucket, or `None` if it follows from the capacity.
    #[must_use]
    pub const fn initial(&self) -> Option<u64> {
        self.initial
    }

    /// Returns the time without an admitted call after which the bucket is unused again, or `None` if it follows from
    /// the count.
    #[must_use]
    pub const fn reset_after(&self) -> Option<Duration> {
        self.reset_after
    }

    /// Returns the capacity under a rule of that count: the count itself unless it was set, and 0 for a count of 0.
    #[must_use]
    pub fn capacity_for(&self, count: u64) -> u64 {
        if count == 0 { 0 } else { self.capacity.unwrap_or(count) }
    }

    /// Returns the number of tokens in an unused bucket under a rule of that count, at most the capacity.
    #[must_use]
    pub fn initial_for(&self, count: u64) -> u64 {
        let capacity = self.capacity_for(count);
        self.initial.map_or(capacity, |initial| initial.min(capacity))
    }

    /// Returns the time without an admitted call after which the bucket is unused again, under a rule of that count.
    #[must_use]
    pub fn reset_after_for(&self, count: u64) -> Duration {
        self.reset_after.unwrap_or_else(|| self.fill_time_for(count).min(MAX_PER))
    }

    /// Returns the time in which the bucket fills from empty under a rule of that count, rounded up to a microsecond.
    #[must_use]
    pub fn fill_time_for(&self, count: u64) -> Duration {
        let tokens_us = u128::from(self.capacity_for(count)) * self.per.as_micros();
        let us = tokens_us.div_ceil(u128::from(count.max(1)));
        Duration::from_micros(u64::try_from(us).unwrap_or(u64::MAX))
    }

    /// Returns a bucket with those of these parameters that are set.
    pub(crate) const fn of(
        per: Duration,
        capacity: Option<u64>,
        initial: Option<u64>,
        reset_after: Option<Duration>,
    ) -> Self {
        Self { per, capacity, initial, reset_after }
    }

    /// Divides the capacity and the initial tokens by the number of parts, rounded up.
    pub(crate) fn divided(self, parts: NonZeroU64) -> Self {
        let part = |tokens: Option<u64>| tokens.map(|tokens| tokens.div_ceil(parts.get()));
        Self { capacity: part(self.capacity), initial: part(self.initial), ..self }
    }

    /// Returns the bucket that a store keeps if calls are made up to `ahead` after they were counted. It has no room
    /// for the tokens that flow in during that time, so this bucket holds for the calls when they are made.
    pub(crate) fn ahead(self, count: u64, ahead: Duration) -> Self {
        let flow = (u128::from(count) * ahead.as_micros()).div_ceil(self.per.as_micros().max(1));
        let capacity = self.capacity_for(count).saturating_sub(u64::try_from(flow).unwrap_or(u64::MAX));
        Self {
            per: self.per,
            capacity: Some(capacity),
            initial: self.initial.map(|initial| initial.min(capacity)),
            reset_after: Some(self.reset_after_for(count).saturating_add(ahead).min(MAX_PER)),
        }
    }

    /// Returns the greatest count for which the arithmetic is exact.
    pub(crate) fn greatest_count(&self) -> u64 {
        let per_us = self.per.as_micros();
        let greatest = match self.capacity {
            Some(capacity) => u128::from(MAX_EXACT).saturating_sub(u128::from(capacity) * per_us),
            None => u128::from(MAX_EXACT) / (per_us + 1),
        };
        u64::try_from(greatest).unwrap_or(MAX_EXACT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_parameter_that_is_not_set_follows_from_the_count() {
        let bucket = TokenBucket::new(SECOND);
        assert_eq!(bucket.capacity_for(5), 5);
        assert_eq!(bucket.initial_for(5), 5);
        assert_eq!(bucket.reset_after_for(5), SECOND);
        assert_eq!(bucket.capacity_for(7), 7);
        assert_eq!(bucket.initial_for(7), 7);
    }

    #[test]
    fn the_initial_tokens_fit_into_the_capacity_for_every_count() {
        let bucket = TokenBucket::new(SECOND).with_initial(3);
        assert_eq!([5, 2, 0].map(|count| bucket.initial_for(count)), [3, 2, 0]);
    }

    #[test]
    fn a_count_of_zero_leaves_no_room() {
        let bucket = TokenBucket::new(MAX_PER).with_capacity(100);
        assert_eq!([1, 0].map(|count| bucket.capacity_for(count)), [100, 0]);
        assert_eq!([5, 0].map(|count| bucket.reset_after_for(count)), [MAX_PER, Duration::ZERO]);
    }

    #[test]
    fn a_part_of_a_bucket_holds_its_part_of_the_tokens() {
        let parts = NonZeroU64::new(4).unwrap();
        let bucket = TokenBucket::new(SECOND).with_capacity(10).with_initial(5).with_reset_after(9 * SECOND);
        let part = TokenBucket::new(SECOND).with_capacity(3).with_initial(2).with_reset_after(9 * SECOND);
        assert_eq!(bucket.divided(parts), part);
        assert_eq!(TokenBucket::new(SECOND).divided(parts), TokenBucket::new(SECOND));
    }

    #[test]
    fn the_time_to_fill_is_rounded_up() {
        let fill_time = |count, capacity| TokenBucket::new(SECOND).with_capacity(capacity).fill_time_for(count);
        assert_eq!(fill_time(3, 1), Duration::from_micros(333_334));
        assert_eq!(fill_time(5, 100), 20 * SECOND);
    }
}
