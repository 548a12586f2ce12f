//! A rule: a limit that an algorithm counts.

use std::borrow::Cow;
use std::num::NonZeroU64;
use std::time::Duration;

use crate::algorithm::{Algorithm, Role, TokenBucket};
#[cfg(feature = "cron")]
use crate::cron::Schedule;
use crate::limits::{MAX_CONCURRENCY, MAX_COUNTER_COUNT, MAX_EXACT, MAX_SLIDING_COUNT};
use crate::unit::CALLS;

/// A second label of the main subject, for duplicates that `release_if` releases: with it, they have a tally of their
/// own.
pub const RELEASED_LABEL: &str = "prevent_duplicate";

/// The window of `prevent_duplicate` without `per`: five seconds.
pub const DUPLICATE_PER: Duration = Duration::from_secs(5);

/// A limit on how much one subject may do.
///
/// A constructor checks nothing: [`validate`](crate::validate()) checks all rules of a policy together.
///
/// # Text form
///
/// [`Display`](std::fmt::Display) writes a rule as text for people, and [`FromStr`](std::str::FromStr) reads it back.
/// [`parse_rules`](crate::parse_rules) and [`format_rules`](crate::format_rules) do the same for a list of rules,
/// separated by `,` or `·`.
///
/// | text | rule |
/// | --- | --- |
/// | `100 per 1h` | [sliding window](Self::sliding_window) |
/// | `about 100000 per 1h` | [sliding counter](Self::sliding_counter) |
/// | `100 per fixed 1h` | [fixed window](Self::fixed_window) |
/// | `5 per 1s burst 100` | [token bucket](Self::from_bucket) with a capacity of 100 |
/// | `5 per 1s bucket` | [token bucket](Self::token_bucket) with the capacity of its count |
/// | `5 per 1s burst 100 initial 3 reset_after 10m` | with the other parameters of a [`TokenBucket`]; each may be left out |
/// | `10 per "0 0 6 * * *" Asia/Shanghai` | schedule: six cron fields in quotes and a time zone |
/// | `10 per @daily` | schedule: a macro needs no quotes; without a time zone it is `UTC` |
/// | `10 concurrent lease 30s` | [concurrency](Self::concurrency) |
/// | `prevent_duplicate per 5s` | [duplicate](Self::duplicate); without `per`, [5 seconds](DUPLICATE_PER) |
/// | `20000 tokens per 60s`, `500 tokens per 1s burst 20000` | any rule but duplicates and concurrency, counting a [unit](Self::counting); `calls` is none |
/// | `0 per 1h` | any rule with a count of 0 admits nothing |
/// | `n per 1h` | any rule whose count is given by [each call](Self::varying) |
/// | `100 per 1d as daily`, `100 per 1d as "each day"` | any rule with a [name](Self::named) |
/// | `50 per 1d shadow` | any rule but concurrency in [shadow](Self::shadow) |
///
/// * A count is a whole number of decimal digits, with `_` between them where it helps to read: `20_000`.
/// * A unit is a lower-case letter, followed by such letters, digits and `_`, and no other word of this form.
/// * A duration is a whole number and one of `us`, `ms`, `s`, `m`, `h`, `d`, without a space between them.
/// * Words are separated by white space and are in lower case. The words after the window may stand in any order.
/// * A name needs quotes unless it consists of letters, digits, `_`, `-` and `.`. Quotes are `"` or `'`; within them,
///   `\` stands before a quote or a `\`.
/// * Outside of quotes, no rule contains `,` or `·`.
///
/// The text of a rule that passes [`validate`](crate::validate()) or [`validate_override`](crate::validate_override)
/// reads back as an equal rule. `{:#}` leaves the name out.
///
/// ```
/// use std::time::Duration;
/// use tallygate_rules::Rule;
///
/// let rule: Rule = "100 per 1h as hourly".parse()?;
/// assert_eq!(rule, Rule::sliding_window(100, Duration::from_secs(3_600)).named("hourly"));
/// assert_eq!(rule.to_string(), "100 per 1h as hourly");
///
/// let error = "100/hour".parse::<Rule>().unwrap_err();
/// assert_eq!(error.suggestion(), Some("100 per 1h"));
/// # Ok::<(), tallygate_rules::ParseRuleError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    role: Role,
    algorithm: Algorithm,
    count: u64,
    varies: bool,
    is_shadow: bool,
    unit: Option<Cow<'static, str>>,
    name: Option<Cow<'static, str>>,
}

impl Rule {
    /// Returns a rule of at most `count` in any window of length `per`: the exact sliding window.
    #[must_use]
    pub const fn sliding_window(count: u64, per: Duration) -> Self {
        Self::limit(count, Algorithm::SlidingWindow { per })
    }

    /// Returns a rule of about `count` in any window of length `per`, in constant memory: for very large counts.
    #[must_use]
    pub const fn sliding_counter(count: u64, per: Duration) -> Self {
        Self::limit(count, Algorithm::SlidingCounter { per })
    }

    /// Returns a rule of at most `count` in a window that opens at the first hit and lasts `per`.
    #[must_use]
    pub const fn fixed_window(count: u64, per: Duration) -> Self {
        Self::limit(count, Algorithm::FixedWindow { per })
    }

    /// Returns a rule of at most `count` between two ticks of a schedule.
    #[cfg(feature = "cron")]
    #[must_use]
    pub const fn cron(count: u64, schedule: Schedule) -> Self {
        Self::limit(count, Algorithm::Cron { schedule })
    }

    /// Returns a token bucket that holds `count` tokens, and into which `count` tokens flow per `per`.
    ///
    /// For another capacity and other parameters, see [`from_bucket`](Self::from_bucket).
    #[must_use]
    pub const fn token_bucket(count: u64, per: Duration) -> Self {
        Self::from_bucket(count, TokenBucket::new(per))
    }

    /// Returns a token bucket with parameters, into which `count` tokens flow per [`TokenBucket::per`].
    #[must_use]
    pub const fn from_bucket(count: u64, bucket: TokenBucket) -> Self {
        Self::limit(count, Algorithm::TokenBucket(bucket))
    }

    /// Returns a rule of one call in any window of length `per`. Further calls are duplicates.
    ///
    /// The rule counts calls and ignores their cost.
    #[must_use]
    pub const fn duplicate(per: Duration) -> Self {
        let mut rule = Self::limit(1, Algorithm::SlidingWindow { per });
        rule.role = Role::Duplicate;
        rule
    }

    /// Returns a rule of at most `limit` concurrent calls over all processes. A lease that is not renewed ends after
    /// `lease`, so a process that has died keeps its concurrent calls that long.
    ///
    /// The rule counts calls and ignores their cost.
    #[must_use]
    pub const fn concurrency(limit: u64, lease: Duration) -> Self {
        let mut rule = Self::limit(limit, Algorithm::Concurrency { lease });
        rule.role = Role::Concurrency;
        rule
    }

    /// Returns a rule of each algorithm, for tests that hold for all of them.
    // The match has no wildcard, so the compiler asks for the next algorithm of the chain.
    #[doc(hidden)]
    pub fn of_each_algorithm() -> impl Iterator<Item = Self> {
        let minute = Duration::from_secs(60);
        std::iter::successors(Some(Self::sliding_window(5, minute)), move |rule| match rule.algorithm {
            Algorithm::SlidingWindow { .. } => Some(Self::sliding_counter(5, minute)),
            Algorithm::SlidingCounter { .. } => Some(Self::fixed_window(5, minute)),
            Algorithm::FixedWindow { .. } => Some(Self::token_bucket(5, minute)),
            Algorithm::TokenBucket(_) => Some(Self::concurrency(5, minute)),
            #[cfg(feature = "cron")]
            Algorithm::Concurrency { .. } => Some(Self::cron(5, Schedule::parse("@daily", "UTC").ok()?)),
            #[cfg(feature = "cron")]
            Algorithm::Cron { .. } => None,
            #[cfg(not(feature = "cron"))]
            Algorithm::Concurrency { .. } => None,
        })
    }

    const fn limit(count: u64, algorithm: Algorithm) -> Self {
        Self { role: Role::Limit, algorithm, count, varies: false, is_shadow: false, unit: None, name: None }
    }

    /// Returns the rule with another count.
    #[must_use]
    pub fn with_count(self, count: u64) -> Self {
        Self { count, varies: false, ..self }
    }

    /// Returns one of `parts` equal parts of this rule. Its count, and a bucket's capacity and initial tokens, are
    /// divided and rounded up.
    #[must_use]
    pub fn divided(self, parts: NonZeroU64) -> Self {
        let algorithm = match self.algorithm {
            Algorithm::TokenBucket(bucket) => Algorithm::TokenBucket(bucket.divided(parts)),
            algorithm @ (Algorithm::SlidingWindow { .. }
            | Algorithm::SlidingCounter { .. }
            | Algorithm::FixedWindow { .. }
            | Algorithm::Concurrency { .. }) => algorithm,
            #[cfg(feature = "cron")]
            algorithm @ Algorithm::Cron { .. } => algorithm,
        };
        Self { count: self.count.div_ceil(parts.get()), algorithm, ..self }
    }

    /// Returns the rule that a store checks if calls are made up to `ahead` after they were counted, so that this rule
    /// holds for the calls when they are made. Returns `None` if no such rule admits anything.
    ///
    /// The calls that are made in a window of length `per` are counted within one of length `per + ahead`. A fixed
    /// window and the window of a schedule stay as they are: their calls have to be made before the window ends.
    #[must_use]
    pub fn ahead(&self, ahead: Duration) -> Option<Self> {
        if self.role != Role::Limit {
            return None;
        }
        let algorithm = match &self.algorithm {
            Algorithm::SlidingWindow { per } => Algorithm::SlidingWindow { per: per.saturating_add(ahead) },
            Algorithm::SlidingCounter { per } => Algorithm::SlidingCounter { per: per.saturating_add(ahead) },
            Algorithm::TokenBucket(bucket) => Algorithm::TokenBucket(bucket.ahead(self.count, ahead)),
            window @ Algorithm::FixedWindow { .. } => window.clone(),
            #[cfg(feature = "cron")]
            window @ Algorithm::Cron { .. } => window.clone(),
            Algorithm::Concurrency { .. } => return None,
        };
        let rule = Self { algorithm, ..self.clone() };
        (rule.capacity() != Some(0) || self.count == 0).then_some(rule)
    }

    /// Returns the rule with a count that each call gives. A call that gives none is denied.
    #[must_use]
    pub fn varying(self) -> Self {
        Self { count: 0, varies: true, ..self }
    }

    /// Returns the rule with a name, which identifies it in its policy.
    #[must_use]
    pub fn named(self, name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Returns the rule counting this unit, like `tokens` or `bytes`, in place of calls. `calls` names the unit of a rule
    /// that says nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tallygate_rules::Rule;
    ///
    /// let rule = Rule::sliding_window(20_000, Duration::from_secs(60)).counting("tokens");
    /// assert_eq!(rule.unit(), Some("tokens"));
    /// ```
    #[must_use]
    pub fn counting(self, unit: impl Into<Cow<'static, str>>) -> Self {
        let unit = unit.into();
        Self { unit: (unit != CALLS).then_some(unit), ..self }
    }

    /// Returns the unit that this rule counts; `None` if it counts calls by their cost.
    #[must_use]
    pub fn unit(&self) -> Option<&str> {
        self.unit.as_deref()
    }

    /// Returns the name of what this rule counts: its [unit](Self::unit), or `calls`.
    #[must_use]
    pub fn counted(&self) -> &str {
        self.unit().unwrap_or(CALLS)
    }

    /// Returns the rule in shadow: it is tried out beside the enforced rules. In a tally of its own, it counts the
    /// calls that these rules admit. A call that it would deny is reported to the log and the metrics, and runs.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tallygate_rules::Rule;
    ///
    /// let tried = Rule::sliding_window(50, Duration::from_secs(60)).shadow();
    /// assert_eq!(tried.to_string(), "50 per 1m shadow");
    /// ```
    #[must_use]
    pub fn shadow(self) -> Self {
        Self { is_shadow: true, ..self }
    }

    /// Returns whether this rule is in shadow, so that it denies nothing.
    #[must_use]
    pub const fn is_shadow(&self) -> bool {
        self.is_shadow
    }

    /// Returns the name of this rule, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns whether each call gives the count of this rule.
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

    /// Returns the greatest weight that this rule admits in its window; for a token bucket, the tokens that flow in per
    /// `per`; for concurrency, the greatest number of concurrent calls.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the length of this rule's window, or `None` for the windows of a schedule and for concurrency.
    #[must_use]
    pub const fn per(&self) -> Option<Duration> {
        match &self.algorithm {
            Algorithm::SlidingWindow { per } | Algorithm::SlidingCounter { per } | Algorithm::FixedWindow { per } => {
                Some(*per)
            }
            Algorithm::TokenBucket(bucket) => Some(bucket.per()),
            #[cfg(feature = "cron")]
            Algorithm::Cron { .. } => None,
            Algorithm::Concurrency { .. } => None,
        }
    }

    /// Returns the length of a lease that is not renewed, or `None` for other algorithms than concurrency.
    #[must_use]
    pub const fn lease(&self) -> Option<Duration> {
        match &self.algorithm {
            Algorithm::Concurrency { lease } => Some(*lease),
            _ => None,
        }
    }

    /// Returns the most tokens in this rule's bucket, or `None` for other algorithms.
    #[must_use]
    pub fn capacity(&self) -> Option<u64> {
        self.bucket().map(|bucket| bucket.capacity_for(self.count))
    }

    /// Returns the parameters of this rule's bucket, or `None` for other algorithms.
    #[must_use]
    pub const fn bucket(&self) -> Option<&TokenBucket> {
        match &self.algorithm {
            Algorithm::TokenBucket(bucket) => Some(bucket),
            _ => None,
        }
    }

    /// Returns the schedule whose ticks begin this rule's windows, or `None` for other algorithms.
    #[cfg(feature = "cron")]
    #[must_use]
    pub const fn schedule(&self) -> Option<&Schedule> {
        match &self.algorithm {
            Algorithm::Cron { schedule } => Some(schedule),
            _ => None,
        }
    }

    /// Returns whether this rule counts approximately.
    #[must_use]
    pub const fn is_approximate(&self) -> bool {
        match self.algorithm {
            Algorithm::SlidingCounter { .. } => true,
            Algorithm::SlidingWindow { .. }
            | Algorithm::FixedWindow { .. }
            | Algorithm::TokenBucket(_)
            | Algorithm::Concurrency { .. } => false,
            #[cfg(feature = "cron")]
            Algorithm::Cron { .. } => false,
        }
    }

    /// Whether this rule is an exact sliding window.
    pub(crate) const fn is_sliding_window(&self) -> bool {
        matches!(self.algorithm, Algorithm::SlidingWindow { .. })
    }

    /// Returns the greatest count that this rule could have.
    #[must_use]
    pub fn greatest_count(&self) -> u64 {
        match &self.algorithm {
            // Whether a call is a duplicate depends on the last call alone.
            Algorithm::SlidingWindow { .. } if matches!(self.role, Role::Duplicate) => 1,
            Algorithm::SlidingWindow { .. } => MAX_SLIDING_COUNT,
            Algorithm::SlidingCounter { .. } => MAX_COUNTER_COUNT,
            Algorithm::TokenBucket(bucket) => bucket.greatest_count(),
            Algorithm::Concurrency { .. } => MAX_CONCURRENCY,
            Algorithm::FixedWindow { .. } => MAX_EXACT,
            #[cfg(feature = "cron")]
            Algorithm::Cron { .. } => MAX_EXACT,
        }
    }

    /// Returns the greatest cost of a call that this rule can admit.
    #[must_use]
    pub fn greatest_cost(&self) -> u64 {
        match self.role {
            Role::Duplicate | Role::Concurrency => u64::MAX,
            Role::Limit => self.capacity().unwrap_or(self.count),
        }
    }

    /// Returns whether both rules have the same role, unit, algorithm and window. Counts, names, leases and the other
    /// parameters of token buckets may differ.
    #[must_use]
    pub fn has_same_window(&self, other: &Self) -> bool {
        let same_window = match &self.algorithm {
            Algorithm::TokenBucket(bucket) => other.bucket().is_some_and(|other| other.per() == bucket.per()),
            Algorithm::Concurrency { .. } => other.lease().is_some(),
            Algorithm::SlidingWindow { .. } | Algorithm::SlidingCounter { .. } | Algorithm::FixedWindow { .. } => {
                self.algorithm == other.algorithm
            }
            #[cfg(feature = "cron")]
            Algorithm::Cron { .. } => self.algorithm == other.algorithm,
        };
        self.role == other.role && self.unit == other.unit && same_window
    }
}
