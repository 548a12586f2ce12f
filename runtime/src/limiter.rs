//! The limiter: where tallies are kept, and who asks.

mod builder;

use std::sync::Arc;
use std::time::Duration;

use once_cell::sync::{Lazy, OnceCell};

pub use self::builder::LimiterBuilder;
use crate::backend::Reply;
use crate::backend::{Backend, Memory, Request};
use crate::key::Key;
use crate::{Decision, Denial, Error, Outage, Permit, Policy, Subject};

/// The prefix of all keys when none is set.
pub const DEFAULT_PREFIX: &str = "tallygate";

/// The longest a decision takes when no deadline is set: 250 milliseconds.
pub const DEFAULT_DEADLINE: Duration = Duration::from_millis(250);

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
#[derive(Clone, Debug)]
pub struct Limiter {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    prefix: String,
    backend: Backend,
}

impl Limiter {
    /// Returns a limiter whose tallies are in this process, and nowhere else.
    ///
    /// Its clock is tokio's: a test that pauses time can advance it past a window instead of sleeping.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::new(DEFAULT_PREFIX.to_owned(), Backend::Memory(Memory::new()))
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

    /// Starts a limiter with settings other than the default ones.
    pub fn builder() -> LimiterBuilder {
        LimiterBuilder::new()
    }

    /// Makes this the limiter of every annotated function that names none.
    ///
    /// # Errors
    ///
    /// Another limiter is installed already. Install one, once, at start-up.
    pub fn install(self) -> Result<(), Error> {
        INSTALLED.set(self).map_err(|_| Error::new("a limiter is installed already; call `install` once, at start-up"))
    }

    /// Returns the installed limiter, or the embedded one that stands in for it until one is installed.
    #[must_use]
    pub fn installed() -> &'static Self {
        INSTALLED.get().unwrap_or_else(|| &FALLBACK)
    }

    /// Decides one call: every rule of the policy admits and counts it, or none counts it.
    ///
    /// A call whose future is dropped may still count.
    ///
    /// # Errors
    ///
    /// The backend could not decide within the deadline. A call that times out may still count.
    pub async fn check(&self, policy: &Policy, subject: &Subject) -> Result<Decision, Outage> {
        let key = Key::new(&self.inner.prefix, policy.segment(), subject);
        let request = Request { key: &key, rules: policy.rules(), cost: 1 };
        Ok(match self.inner.backend.decide(request).await? {
            Reply::Admitted => Decision::Allowed(Permit::new()),
            Reply::Denied { rule, retry_after } => Decision::Denied(Denial::new(policy.clone(), rule, retry_after)),
        })
    }

    fn new(prefix: String, backend: Backend) -> Self {
        Self { inner: Arc::new(Inner { prefix, backend }) }
    }
}
