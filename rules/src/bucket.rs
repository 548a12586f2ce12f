//! The parameters of a token bucket.

use std::time::Duration;

use crate::{Algorithm, MAX_EXACT, MAX_PER, Rule};

/// A token bucket: `count` tokens flow in per `per`, continuously, up to `capacity`; a call takes as many as it costs.
///
/// The arithmetic is exact, in integers: a fraction of a token is never lost. An unused bucket holds `initial` tokens
/// and stays so until the first admitted call; after `reset_after` without an admitted call it is unused again.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tallygate_rules::{Rule, TokenBucket};
///
/// // Five a second on average, a hundred at once, but only three for who has just arrived.
/// let rule = Rule::from(TokenBucket::new(5, Duration::from_secs(1)).capacity(100).initial(3));
/// assert_eq!(rule.capacity(), Some(100));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenBucket {
    count: u64,
    per: Duration,
    capacity: Option<u64>,
    initial: Option<u64>,
    reset_after: Option<Duration>,
}

impl TokenBucket {
    /// `count` tokens per `per` flow into a bucket that holds `count`, and is full at first.
    #[must_use]
    pub const fn new(count: u64, per: Duration) -> Self {
        Self { count, per, capacity: None, initial: None, reset_after: None }
    }

    /// Sets the most tokens the bucket holds: the most that can be taken at once.
    #[must_use]
    pub const fn capacity(mut self, tokens: u64) -> Self {
        self.capacity = Some(tokens);
        self
    }

    /// Sets how many tokens an unused bucket holds; the capacity, unless said otherwise.
    #[must_use]
    pub const fn initial(mut self, tokens: u64) -> Self {
        self.initial = Some(tokens);
        self
    }

    /// Sets after how long without an admitted call the bucket is unused again; the time in which it fills from empty,
    /// unless said otherwise.
    #[must_use]
    pub const fn reset_after(mut self, idle: Duration) -> Self {
        self.reset_after = Some(idle);
        self
    }

    /// Turns the bucket into a rule.
    #[must_use]
    pub const fn into_rule(self) -> Rule {
        let count = self.count;
        Rule::limit(Algorithm::TokenBucket(self), count)
    }

    /// Returns the time in which the rule's `count` of tokens flows in.
    #[must_use]
    pub const fn per(&self) -> Duration {
        self.per
    }

    /// Returns the capacity, which is the rule's `count` unless it was set. Without a count there is no room at all.
    #[must_use]
    pub fn capacity_or(&self, count: u64) -> u64 {
        if count == 0 { 0 } else { self.capacity.unwrap_or(count) }
    }

    /// Returns how many tokens an unused bucket holds, at the rule's `count`.
    #[must_use]
    pub fn initial_or(&self, count: u64) -> u64 {
        let capacity = self.capacity_or(count);
        self.initial.map_or(capacity, |initial| initial.min(capacity))
    }

    /// Returns after how long without an admitted call the bucket is unused again, at the rule's `count`.
    #[must_use]
    pub fn reset_after_or(&self, count: u64) -> Duration {
        self.reset_after.unwrap_or_else(|| self.fill_time(count).min(MAX_PER))
    }

    /// Returns the time in which the bucket fills from empty, at the rule's `count`, rounded up to a microsecond.
    #[must_use]
    pub fn fill_time(&self, count: u64) -> Duration {
        let tokens_us = u128::from(self.capacity_or(count)) * self.per.as_micros();
        let us = tokens_us.div_ceil(u128::from(count.max(1)));
        Duration::from_micros(u64::try_from(us).unwrap_or(u64::MAX))
    }

    /// The greatest count at which the arithmetic stays exact.
    pub(crate) fn greatest_count(&self) -> u64 {
        let per_us = self.per.as_micros();
        let greatest = match self.capacity {
            Some(capacity) => u128::from(MAX_EXACT).saturating_sub(u128::from(capacity) * per_us),
            None => u128::from(MAX_EXACT) / (per_us + 1),
        };
        u64::try_from(greatest).unwrap_or(MAX_EXACT)
    }

    /// Returns the capacity if it was set.
    #[must_use]
    pub const fn capacity_set(&self) -> Option<u64> {
        self.capacity
    }

    /// Returns how many tokens an unused bucket holds, if it was set.
    #[must_use]
    pub const fn initial_set(&self) -> Option<u64> {
        self.initial
    }

    /// Returns after how long without an admitted call the bucket is unused again, if it was set.
    #[must_use]
    pub const fn reset_after_set(&self) -> Option<Duration> {
        self.reset_after
    }
}

impl From<TokenBucket> for Rule {
    fn from(bucket: TokenBucket) -> Self {
        bucket.into_rule()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_not_set_follows_from_the_count() {
        let bucket = TokenBucket::new(5, SECOND);
        assert_eq!((bucket.capacity_or(5), bucket.initial_or(5), bucket.reset_after_or(5)), (5, 5, SECOND));
        assert_eq!((bucket.capacity_or(7), bucket.initial_or(7)), (7, 7));
    }

    #[test]
    fn whatever_the_count_the_parts_fit_together() {
        let bucket = TokenBucket::new(5, SECOND).initial(3);
        assert_eq!((bucket.initial_or(5), bucket.initial_or(2), bucket.initial_or(0)), (3, 2, 0));
        let bucket = TokenBucket::new(5, MAX_PER).capacity(100);
        assert_eq!((bucket.capacity_or(1), bucket.capacity_or(0)), (100, 0));
        assert_eq!((bucket.reset_after_or(5), bucket.reset_after_or(0)), (MAX_PER, Duration::ZERO));
    }

    #[test]
    fn the_time_to_fill_is_rounded_up() {
        assert_eq!(TokenBucket::new(3, SECOND).capacity(1).fill_time(3), Duration::from_micros(333_334));
        assert_eq!(TokenBucket::new(5, SECOND).capacity(100).fill_time(5), 20 * SECOND);
    }
}
