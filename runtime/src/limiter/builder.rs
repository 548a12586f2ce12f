//! The settings of a limiter.

use std::fmt;
use std::time::Duration;

use tallygate_rules::is_plain;

use super::core::{Core, Settings};
use super::{DEFAULT_DEADLINE, DEFAULT_DENIAL_CACHE, DEFAULT_MAX_SUBJECTS, DEFAULT_PREFIX, Limiter};
use crate::clock::Clock;
#[cfg(feature = "testing")]
use crate::clock::ManualClock;
use crate::error::Error;
#[cfg(feature = "redis")]
use crate::store::Redis;
use crate::store::{Memory, PREFIX_BYTES, Store};
use crate::subject::filters::Secret;

/// The longest that a denial can be cached.
const LONGEST_DENIAL_CACHE: Duration = Duration::from_secs(10);

/// The longest deadline, so that no sum of times overflows the clock.
const LONGEST_DEADLINE: Duration = Duration::from_secs(3_600);

/// Builds a [`Limiter`] with settings of your own, in memory or on a server.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use tallygate::Limiter;
///
/// # async fn start() -> Result<(), tallygate::Error> {
/// let embedded = Limiter::builder().max_subjects(10_000).build_in_memory()?;
///
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
#[must_use = "a builder does nothing until it connects or builds"]
pub struct LimiterBuilder {
    prefix: String,
    secret: Option<Vec<u8>>,
    deadline: Duration,
    max_subjects: usize,
    denial_cache: Duration,
    clock: Clock,
}

/// The default settings.
impl Default for LimiterBuilder {
    fn default() -> Self {
        Self {
            prefix: DEFAULT_PREFIX.to_owned(),
            secret: None,
            deadline: DEFAULT_DEADLINE,
            max_subjects: DEFAULT_MAX_SUBJECTS,
            denial_cache: DEFAULT_DENIAL_CACHE,
            clock: Clock::tokio(),
        }
    }
}

impl Limiter {
    /// Starts a limiter with settings of your own.
    pub fn builder() -> LimiterBuilder {
        LimiterBuilder::default()
    }

    /// Connects to the server of a URL and returns a limiter that keeps its tallies there.
    ///
    /// | URL | where the tallies are |
    /// | --- | --- |
    /// | `redis://[user:password@]host[:port][/database]` | a Redis server of version 6.2 or later, or Valkey |
    /// | `redis+unix:///path` | the same, by a Unix socket |
    /// | `memory://` | this process, for a URL from the environment; in code, write [`Limiter::in_memory`] |
    ///
    /// # Errors
    ///
    /// The URL cannot be read ([`ErrorKind::Setting`](crate::ErrorKind::Setting)), or the server cannot be reached or
    /// refuses the password ([`ErrorKind::Backend`](crate::ErrorKind::Backend)).
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::builder().connect(url).await
    }
}

impl LimiterBuilder {
    /// Sets the prefix of all keys: 1 to 25 of `A–Z a–z 0–9 . _ @ + ~ -`.
    ///
    /// Programs on one Redis server share their tallies if they have the same prefix, and only then.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the secret that keys the filter `hash`, as in `{phone:hash}`.
    ///
    /// With a secret, the keys in Redis, in its backups and in its log do not reveal the values, and nobody without the
    /// secret can check a guess. Without one, the digest is the same for everybody: a value that can be guessed, such as a
    /// telephone number, can be found by trying all of them. Programs that share tallies need the same secret; another
    /// secret starts new tallies.
    ///
    /// It may be of any length. 16 random bytes or more cannot be guessed.
    pub fn secret(mut self, secret: impl Into<Vec<u8>>) -> Self {
        self.secret = Some(secret.into());
        self
    }

    /// Sets the longest time that a decision takes, connecting and queueing included: 250 milliseconds by default, an hour
    /// at most.
    ///
    /// A call that has no answer by then is rejected with [`RejectionKind::Unavailable`](crate::RejectionKind::Unavailable).
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the greatest number of subjects whose tallies are kept in this process at once: a million by default. A tally
    /// takes about 300 bytes, and 8 more for every unit of weight in a sliding window.
    ///
    /// Beyond that number, a new subject replaces one that is not being denied. If there is none, the call is rejected with
    /// [`RejectionKind::Unavailable`](crate::RejectionKind::Unavailable). Tallies in Redis do not count.
    pub fn max_subjects(mut self, subjects: usize) -> Self {
        self.max_subjects = subjects;
        self
    }

    /// Sets how long a denial by Redis is cached in this process, so that a flood of calls on one subject does not reach
    /// Redis: a second by default, at most ten; zero turns the cache off.
    ///
    /// A cached denial ends at the latest when the call would be admitted. A reset or a refund by another process has its
    /// effect here when the cached denial ends. Calls that ask for a [report](crate::Check::report) are never answered from
    /// the cache.
    pub fn denial_cache(mut self, longest: Duration) -> Self {
        self.denial_cache = longest;
        self
    }

    /// Sets the clock by which the limiter decides, also in Redis, where it takes the place of the server's clock: for
    /// [tests](crate::testing) only.
    #[cfg(feature = "testing")]
    pub fn clock(mut self, clock: &ManualClock) -> Self {
        self.clock = clock.into();
        self
    }

    /// Puts the clock of this process ahead of the right time, while the server's clock is right. For the tests of this
    /// workspace.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn clock_ahead_by(mut self, us: i64) -> Self {
        self.clock = Clock::tokio_ahead_by(us);
        self
    }

    /// Returns a limiter that keeps its tallies in this process.
    ///
    /// Settings for a server, like the deadline, are checked and have no effect.
    ///
    /// # Errors
    ///
    /// A setting that cannot be used.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::Limiter;
    ///
    /// let limiter = Limiter::builder().secret("16 random bytes…").build_in_memory()?;
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn build_in_memory(self) -> Result<Limiter, Error> {
        self.check()?;
        let memory = self.memory();
        Ok(self.build(memory))
    }

    /// Connects to the server of a URL and returns a limiter that keeps its tallies there: see [`Limiter::connect`].
    ///
    /// # Errors
    ///
    /// A setting or a URL that cannot be used, or a server that cannot be reached or refuses the password.
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

    /// Returns a limiter that connects to the server of a URL with its first decision.
    ///
    /// Until the server can be reached, every call is rejected with
    /// [`RejectionKind::Unavailable`](crate::RejectionKind::Unavailable).
    ///
    /// # Errors
    ///
    /// A setting or a URL that cannot be used.
    pub fn connect_lazy(self, url: &str) -> Result<Limiter, Error> {
        self.check()?;
        let store = self.store(url)?;
        Ok(self.build(store))
    }

    fn check(&self) -> Result<(), Error> {
        self.check_prefix()?;
        self.check_secret()?;
        self.check_deadline()?;
        self.check_max_subjects()?;
        self.check_denial_cache()
    }

    fn build(self, store: Store) -> Limiter {
        let Self { prefix, secret, clock, .. } = self;
        // Tallies in memory answer as fast as the cache.
        let denial_cache = if matches!(store, Store::Memory(_)) { Duration::ZERO } else { self.denial_cache };
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

    fn memory(&self) -> Store {
        Store::Memory(Memory::new(self.clock.clone(), self.max_subjects))
    }

    fn store(&self, url: &str) -> Result<Store, Error> {
        match url.split_once("://") {
            Some(("memory", "")) => Ok(self.memory()),
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

/// Leaves out the secret.
impl fmt::Debug for LimiterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimiterBuilder").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}
