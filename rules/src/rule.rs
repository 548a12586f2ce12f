//! A rule: a limit, as an algorithm with its parameters.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

#[cfg(feature = "cron")]
use crate::Schedule;
use crate::{MAX_COUNTER_COUNT, MAX_EXACT, MAX_SLIDING_COUNT, TokenBucket, format_duration};

/// The window of a `prevent_duplicate` that names none: five seconds.
pub const DUPLICATE_PER: Duration = Duration::from_secs(5);

/// How a rule counts.
///
/// Times are whole microseconds, read once per decision from the clock of the storage.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// Admits a call when the weight admitted in `(now − per, now]` and its own cost are at most the count.
    ///
    /// The exact sliding window, also known as a sliding log: in no window of length `per`, wherever it starts, is more
    /// than the count admitted. It remembers every unit of weight it admits.
    SlidingWindow {
        /// The length of the window.
        per: Duration,
    },
    /// Admits a call when the weight of the current slot, the weight of the slot before in proportion to how much of it
    /// the window still covers, and the call's own cost are at most the count.
    ///
    /// The approximate sliding window of constant memory, also known as a sliding window counter. Slots of length `per`
    /// begin at multiples of `per` since 1970.
    SlidingCounter {
        /// The length of a slot, and of the window.
        per: Duration,
    },
    /// Admits a call when the weight since the window opened and its own cost are at most the count.
    ///
    /// A window opens at the first hit and lasts `per`.
    FixedWindow {
        /// The length of a window.
        per: Duration,
    },
    /// Admits a call when the weight since the last tick of the schedule and its own cost are at most the count.
    #[cfg(feature = "cron")]
    Cron {
        /// When the rule starts counting afresh.
        schedule: Schedule,
    },
    /// Admits a call when the bucket holds as many tokens as it costs.
    TokenBucket(TokenBucket),
}

/// What the denial of a rule means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// A limit like any other.
    Limit,
    /// A rule in front of the others, that tells a repeated call from too many calls.
    Duplicate,
}

/// A limit on how much one subject may do.
///
/// Building a rule checks nothing: [`validate`](crate::validate()) does, for all rules of a policy at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    role: Role,
    algorithm: Algorithm,
    count: u64,
    varies: bool,
    name: Option<Cow<'static, str>>,
}

impl Rule {
    /// At most `count` in any window of length `per`: the exact sliding window.
    #[must_use]
    pub const fn sliding_window(count: u64, per: Duration) -> Self {
        Self::limit(Algorithm::SlidingWindow { per }, count)
    }

    /// About `count` in any window of length `per`, in constant memory: for very large counts.
    #[must_use]
    pub const fn sliding_counter(count: u64, per: Duration) -> Self {
        Self::limit(Algorithm::SlidingCounter { per }, count)
    }

    /// At most `count` in a window that opens at the first hit and lasts `per`.
    #[must_use]
    pub const fn fixed_window(count: u64, per: Duration) -> Self {
        Self::limit(Algorithm::FixedWindow { per }, count)
    }

    /// At most `count` between two ticks of a schedule.
    #[cfg(feature = "cron")]
    #[must_use]
    pub const fn cron(count: u64, schedule: Schedule) -> Self {
        Self::limit(Algorithm::Cron { schedule }, count)
    }

    /// `count` tokens per `per`, flowing into a bucket that holds `count`: see [`TokenBucket`] for more.
    #[must_use]
    pub const fn token_bucket(count: u64, per: Duration) -> Self {
        TokenBucket::new(count, per).into_rule()
    }

    /// One call in any window of length `per`; whatever comes earlier is a duplicate.
    ///
    /// It weighs calls, not their cost: a call of any cost is one call.
    #[must_use]
    pub const fn duplicate(per: Duration) -> Self {
        let mut rule = Self::limit(Algorithm::SlidingWindow { per }, 1);
        rule.role = Role::Duplicate;
        rule
    }

    pub(crate) const fn limit(algorithm: Algorithm, count: u64) -> Self {
        Self { role: Role::Limit, algorithm, count, varies: false, name: None }
    }

    /// Returns the same rule with another count.
    #[must_use]
    pub fn with_count(mut self, count: u64) -> Self {
        self.count = count;
        self.varies = false;
        self
    }

    /// Returns the same rule with a count that every call says anew. Until one does, the rule admits nothing.
    #[must_use]
    pub fn varying(self) -> Self {
        Self { varies: true, ..self.with_count(0) }
    }

    /// Returns the same rule with a name, by which a rejection tells it from the other rules of its policy.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Returns the name of this rule, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns whether every call says the count of this rule anew.
    #[must_use]
    pub const fn is_varying(&self) -> bool {
        self.varies
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

    /// Returns the greatest weight this rule admits in its window; of a token bucket, the tokens that flow in per `per`.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the length of this rule's window, or `None` for windows that end at the ticks of a schedule.
    #[must_use]
    pub const fn per(&self) -> Option<Duration> {
        match &self.algorithm {
            Algorithm::SlidingWindow { per } | Algorithm::SlidingCounter { per } | Algorithm::FixedWindow { per } => {
                Some(*per)
            }
            Algorithm::TokenBucket(bucket) => Some(bucket.per()),
            #[cfg(feature = "cron")]
            Algorithm::Cron { .. } => None,
        }
    }

    /// Returns the tokens that this rule's bucket holds, or `None` when it has no bucket.
    #[must_use]
    pub fn capacity(&self) -> Option<u64> {
        match &self.algorithm {
            Algorithm::TokenBucket(bucket) => Some(bucket.capacity_or(self.count)),
            _ => None,
        }
    }

    /// Returns the greatest count that this rule could have.
    #[must_use]
    pub fn greatest_count(&self) -> u64 {
        match &self.algorithm {
            Algorithm::SlidingWindow { .. } => MAX_SLIDING_COUNT,
            Algorithm::SlidingCounter { .. } => MAX_COUNTER_COUNT,
            Algorithm::TokenBucket(bucket) => bucket.greatest_count(),
            _ => MAX_EXACT,
        }
    }

    /// Returns the greatest cost that a call can have and still fit.
    #[must_use]
    pub fn greatest_cost(&self) -> u64 {
        match self.role {
            Role::Duplicate => u64::MAX,
            Role::Limit => self.capacity().unwrap_or(self.count),
        }
    }
}

/// Writes the limit in words: `10 per 1m`, or `n per 1m` where the count varies.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = if self.varies { "n".to_owned() } else { self.count.to_string() };
        match &self.algorithm {
            Algorithm::SlidingWindow { per } => write!(f, "{count} per {}", format_duration(*per)),
            Algorithm::SlidingCounter { per } => write!(f, "about {count} per {}", format_duration(*per)),
            Algorithm::FixedWindow { per } => write!(f, "{count} per fixed window of {}", format_duration(*per)),
            #[cfg(feature = "cron")]
            Algorithm::Cron { schedule } => write!(f, "{count} per {schedule}"),
            Algorithm::TokenBucket(bucket) => {
                write!(f, "{count} per {} from a bucket of ", format_duration(bucket.per()))?;
                match bucket.capacity_set() {
                    Some(capacity) => write!(f, "{capacity}"),
                    None => f.write_str(&count),
                }
            }
        }
    }
}
