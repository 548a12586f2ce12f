//! The limiter: what decides calls.

mod builder;
mod call_subjects;
mod check;
mod core;
#[cfg(feature = "redis")]
mod denial_cache;
mod handles;
mod overrides;
mod wait_queue;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use once_cell::sync::{Lazy, OnceCell};

pub use self::builder::LimiterBuilder;
pub(crate) use self::check::Decided;
pub use self::check::{Check, Deciding};
use self::core::{Core, Settings};
pub use self::overrides::{Override, OverrideBuilder};
use crate::clock::Clock;
use crate::error::Error;
use crate::store::{Memory, Store};
use crate::subject::filters::Secret;

/// The prefix of all keys when none is set.
pub const DEFAULT_PREFIX: &str = "tallygate";

/// The longest that a decision takes when no deadline is set: 250 milliseconds.
pub const DEFAULT_DEADLINE: Duration = Duration::from_millis(250);

/// The longest that a denial is cached in this process when no other time is set: a second.
pub const DEFAULT_DENIAL_CACHE: Duration = Duration::from_secs(1);

/// The most subjects whose tallies are kept in this process at once, when no other number is set: a million.
pub const DEFAULT_MAX_SUBJECTS: usize = 1_000_000;

static INSTALLED: OnceCell<Limiter> = OnceCell::new();

static FALLBACK: Lazy<Limiter> = Lazy::new(|| {
    tracing::info!(
        "no limiter is installed, so limits hold within this process only; \
         to share them, call `Limiter::connect(url).await?.install()?` at start-up"
    );
    Limiter::in_memory()
});

/// Decides calls: in this process, or in Redis.
///
/// Cloning is cheap: clones share tallies and connection.
#[derive(Clone)]
#[must_use = "a limiter decides nothing until a call is checked; make it the one of annotated functions by `.install()?`"]
pub struct Limiter {
    core: Arc<Core>,
}

impl Limiter {
    /// Returns a limiter whose tallies are in this process, and nowhere else.
    ///
    /// Its clock is tokio's: a test that pauses time can advance it past a window instead of sleeping. To start at another
    /// time than now, build the limiter with a clock of the module `testing`, a feature of this crate.
    pub fn in_memory() -> Self {
        let clock = Clock::tokio();
        let memory = Memory::new(clock.clone(), DEFAULT_MAX_SUBJECTS);
        Self::new(Core::new(Settings {
            prefix: DEFAULT_PREFIX.to_owned(),
            secret: Secret::public(),
            store: Store::Memory(memory),
            clock,
            denial_cache: Duration::ZERO,
        }))
    }

    /// Makes this the limiter of every annotated function that does not choose one by `limiter = …`.
    ///
    /// # Errors
    ///
    /// Another limiter is installed already. Install one, once, at start-up.
    pub fn install(self) -> Result<(), Error> {
        INSTALLED.set(self).map_err(|_| Error::already_installed())
    }

    /// Returns the installed limiter, or an embedded one in memory until one is installed.
    pub fn installed() -> &'static Self {
        INSTALLED.get().unwrap_or_else(|| &FALLBACK)
    }

    fn new(core: Core) -> Self {
        Self { core: Arc::new(core) }
    }

    pub(crate) fn secret(&self) -> &Secret {
        &self.core.secret
    }
}

impl fmt::Debug for Limiter {
    #[cfg_attr(not(feature = "redis"), allow(clippy::infallible_destructuring_match, reason = "one store of several"))]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store: &dyn fmt::Debug = match &self.core.store {
            Store::Memory(memory) => memory,
            #[cfg(feature = "redis")]
            Store::Redis(_) => &format_args!("Redis"),
        };
        f.debug_struct("Limiter").field("store", store).field("prefix", &self.core.prefix).finish_non_exhaustive()
    }
}
