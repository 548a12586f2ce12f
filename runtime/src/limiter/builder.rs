//! The settings of a limiter.

use std::fmt;
use std::time::Duration;

use tallygate_rules::is_plain;

use super::core::{Core, Settings};
use super::{DEFAULT_DEADLINE, DEFAULT_DENIAL_CACHE, DEFAULT_MAX_SUBJECTS, DEFAULT_PREFIX, Limiter};
use crate::clock::Clock;
use crate::error::Error;
#[cfg(feature = "redis")]
use crate::store::Redis;
use crate::store::{Memory, PREFIX_BYTES, Store};
use crate::subject::filters::Secret;

/// The longest that a denial can be cached.
const LONGEST_DENIAL_CACHE: Duration = Duration::from_secs(10);

/// The longest deadline. Nobody means to wait longer, and no sum of times is beyond the clock.
const LONGEST_DEADLINE: Duration = Duration::from_secs(3_600);

/// Builds a [`Limiter`] with settings other than the default ones.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use tallygate::Limiter;
///
/// # async fn start() -> Result<(), tallygate::Error> {
/// Limiter::builder()
///     .prefix("shop")
///     .deadline(Duration::from_millis(100))
///     .connect("redis://127.0.0.1/")
///     .await?
///     .install()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until it connects"]
pub struct LimiterBuilder {
    prefix: String,
    secret: Option<Vec<u8>>,
    deadline: Duration,
    max_subjects: usize,
    denial_cache: Duration,
    clock: Clock,
}

impl Limiter {
    /// Starts a limiter with settings other than the default ones.
    pub fn builder() -> LimiterBuilder {
        LimiterBuilder {
            prefix: DEFAULT_PREFIX.to_owned(),
            secret: None,
            deadline: DEFAULT_DEADLINE,
            max_subjects: DEFAULT_MAX_SUBJECTS,
            denial_cache: DEFAULT_DENIAL_CACHE,
            clock: Clock::tokio(),
        }
    }

    /// Returns a limiter whose tallies are where `url` says, once it can be reached.
    ///
    /// `memory://` is this process; `redis://[user:password@]host[:port][/database]` and `redis+unix:///path` are a Redis
    /// server of version 6.2 or later, or one that speaks like it.
    ///
    /// # Errors
    ///
    /// A `url` that cannot be read, a server that cannot be reached or that refuses the password.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::builder().connect(url).await
    }
}

impl LimiterBuilder {
    /// Sets what the keys of all tallies begin with: 1 to 25 of `A–Z a–z 0–9 . _ @ + ~ -`.
    ///
    /// Programs that share a Redis server share their tallies exactly when they share the prefix.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets what the filter `hash` of the attribute's placeholders, like `{phone:hash}`, is keyed with.
    ///
    /// With a secret, whoever reads the keys in Redis, its backups or its log cannot tell whose they are, nor check a guess.
    /// Without one, the key is the same for everybody: what can be guessed, such as a telephone number, can be found by
    /// trying, and only a casual look is kept out. Programs that share tallies share the secret; another secret starts new
    /// tallies.
    ///
    /// It may be of any length; 16 random bytes or more are beyond guessing.
    pub fn secret(mut self, secret: impl Into<Vec<u8>>) -> Self {
        self.secret = Some(secret.into());
        self
    }

    /// Sets the longest a decision takes, connecting and queueing included: an hour at most.
    ///
    /// A call that has no answer by then is rejected with [`RejectionKind::Unavailable`](crate::RejectionKind::Unavailable).
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the most subjects whose tallies are kept in this process at once, about 300 bytes each and 8 more for every
    /// unit of weight in a sliding window.
    ///
    /// Beyond that a new subject replaces one that is not being denied; where all are, the call is rejected with
    /// [`RejectionKind::Unavailable`](crate::RejectionKind::Unavailable). Tallies in Redis are not counted.
    pub fn max_subjects(mut self, subjects: usize) -> Self {
        self.max_subjects = subjects;
        self
    }

    /// Sets how long this process answers the calls of a subject by itself after Redis has denied one, so that a flood of
    /// them does not reach Redis: a second unless told otherwise, at most ten; zero turns it off.
    ///
    /// It never lasts beyond the time at which the call would be admitted, as far as that was known: what another process
    /// resets or gives back meanwhile is seen by that much later. Decisions that report are always asked for.
    pub fn denial_cache(mut self, longest: Duration) -> Self {
        self.denial_cache = longest;
        self
    }

    /// Sets the clock that decides.
    #[cfg(feature = "__clock")]
    #[doc(hidden)]
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = clock.into();
        self
    }

    /// Returns a limiter whose tallies are where `url` says, once it can be reached: see [`Limiter::connect`].
    ///
    /// # Errors
    ///
    /// A setting that cannot be used, or a server that cannot be reached or that refuses the password.
    #[cfg_attr(not(feature = "redis"), allow(clippy::unused_async, reason = "only a server has to be reached"))]
    pub async fn connect(self, url: &str) -> Result<Limiter, Error> {
        let limiter = self.connect_lazy(url)?;
        match &limiter.core.store {
            Store::Memory(_) => {}
            #[cfg(feature = "redis")]
            Store::Redis(redis) => redis.reach().await?,
        }
        Ok(limiter)
    }

    /// Returns a limiter whose tallies are where `url` says, without reaching for it: the first decision connects.
    ///
    /// Until the server can be reached, every call is rejected with
    /// [`RejectionKind::Unavailable`](crate::RejectionKind::Unavailable).
    ///
    /// # Errors
    ///
    /// A setting that cannot be used.
    pub fn connect_lazy(self, url: &str) -> Result<Limiter, Error> {
        self.check_prefix()?;
        self.check_secret()?;
        self.check_deadline()?;
        self.check_max_subjects()?;
        self.check_denial_cache()?;
        let store = self.store(url)?;
        Ok(self.build(store))
    }

    fn build(self, store: Store) -> Limiter {
        let Self { prefix, secret, clock, denial_cache, .. } = self;
        let secret = secret.as_deref().map_or_else(Secret::public, Secret::new);
        Limiter::new(Core::new(Settings { prefix, secret, store, clock, denial_cache }))
    }

    fn check_prefix(&self) -> Result<(), Error> {
        let mistake = match self.prefix.len() {
            0 => "must not be empty",
            1..=PREFIX_BYTES if self.prefix.bytes().all(is_plain) => return Ok(()),
            1..=PREFIX_BYTES => "may only contain letters, digits and `. _ @ + ~ -`",
            _ => "has at most 25 bytes",
        };
        Err(Error::new(format!("`prefix` {mistake}, like `prefix(\"shop\")`")))
    }

    fn check_secret(&self) -> Result<(), Error> {
        if self.secret.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::new("`secret` must not be empty; leave it out, or give it random bytes"));
        }
        Ok(())
    }

    fn check_deadline(&self) -> Result<(), Error> {
        let mistake = match self.deadline {
            Duration::ZERO => "must be longer than zero",
            deadline if deadline > LONGEST_DEADLINE => "is at most an hour",
            _ => return Ok(()),
        };
        Err(Error::new(format!("`deadline` {mistake}, like `deadline(Duration::from_millis(250))`")))
    }

    fn check_max_subjects(&self) -> Result<(), Error> {
        if self.max_subjects == 0 {
            return Err(Error::new("`max_subjects` must be at least 1, like `max_subjects(100_000)`"));
        }
        Ok(())
    }

    fn check_denial_cache(&self) -> Result<(), Error> {
        if self.denial_cache > LONGEST_DENIAL_CACHE {
            return Err(Error::new(
                "`denial_cache` is at most ten seconds, like `denial_cache(Duration::from_secs(1))`",
            ));
        }
        Ok(())
    }

    fn store(&self, url: &str) -> Result<Store, Error> {
        match url.split_once("://") {
            Some(("memory", "")) => Ok(Store::Memory(Memory::new(self.clock.clone(), self.max_subjects))),
            Some(("memory", _)) => Err(Error::new("`url` has something behind `memory://`; write just that")),
            #[cfg(feature = "redis")]
            Some(("redis" | "redis+unix", _)) => {
                Ok(Store::Redis(Redis::new(url, &self.prefix, self.deadline, self.clock.clone())?))
            }
            #[cfg(not(feature = "redis"))]
            Some(("redis" | "redis+unix", _)) => {
                Err(Error::new("`url` names a Redis server; enable the feature `redis` of tallygate"))
            }
            Some((scheme, _)) => Err(Error::new(format!(
                "`url` has the unknown scheme `{scheme}`; write `memory://`, `redis://host:port` or `redis+unix:///path`"
            ))),
            None => Err(Error::new("`url` has no scheme; write `memory://` or `redis://host:port`")),
        }
    }
}

/// Says nothing of the secret.
impl fmt::Debug for LimiterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimiterBuilder").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}
