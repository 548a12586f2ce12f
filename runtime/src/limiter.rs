//! The limiter: where tallies are kept, and who asks.

mod builder;

use std::sync::Arc;
use std::time::Duration;

use once_cell::sync::{Lazy, OnceCell};

pub use self::builder::LimiterBuilder;
use crate::backend::{Backend, Memory, Request};
use crate::clock::Clock;
#[cfg(feature = "redis")]
use crate::denied::Denials;
use crate::filter::Secret;
use crate::overrides::Overrides;
use crate::wait::Lines;
use crate::{Check, Error, Policy, Subject};

/// The prefix of all keys when none is set.
pub const DEFAULT_PREFIX: &str = "tallygate";

/// The longest a decision takes when no deadline is set: 250 milliseconds.
pub const DEFAULT_DEADLINE: Duration = Duration::from_millis(250);

/// The longest a denial is remembered in this process when no other time is set: a second.
pub const DEFAULT_REMEMBER_DENIALS: Duration = Duration::from_secs(1);

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
#[derive(Clone, Debug)]
#[must_use = "a limiter decides nothing until it is asked, or installed by `.install()?`"]
pub struct Limiter {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    prefix: String,
    secret: Secret,
    backend: Backend,
    lines: Lines,
    overrides: Overrides,
    #[cfg(feature = "redis")]
    clock: Clock,
    /// None where denials are not remembered.
    #[cfg(feature = "redis")]
    denials: Option<Denials>,
}

impl Limiter {
    /// Returns a limiter whose tallies are in this process, and nowhere else.
    ///
    /// Its clock is tokio's: a test that pauses time can advance it past a window instead of sleeping.
    pub fn in_memory() -> Self {
        let clock = Clock::tokio();
        let memory = Memory::new(clock.clone(), DEFAULT_MAX_SUBJECTS);
        Self::new(DEFAULT_PREFIX.to_owned(), Secret::public(), Backend::Memory(memory), &clock, Duration::ZERO)
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
    pub fn installed() -> &'static Self {
        INSTALLED.get().unwrap_or_else(|| &FALLBACK)
    }

    /// Decides one call of `subject`: every rule of the policy admits and counts it, or none counts it.
    ///
    /// Awaiting the [`Check`] decides it; before that, its methods say more about the call.
    ///
    /// # Errors
    ///
    /// An [`Outage`](crate::Outage): the storage could not decide within the deadline. A call that timed out may still
    /// count, and so may one whose future is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let limiter = Limiter::in_memory();
    /// let uploads = Policy::builder("uploads").rule(Rule::sliding_window(100, Duration::from_secs(60))).build()?;
    ///
    /// let decision = limiter.check(&uploads, &Subject::of("alice")).cost(30).report().await?;
    /// assert!(decision.is_allowed());
    /// assert_eq!(decision.report()[0].remaining(), 70);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn check<'a>(&'a self, policy: &'a Policy, subject: &'a Subject) -> Check<'a> {
        Check::new(self, policy, subject)
    }

    /// Waits for admission of one call of `subject`, however long that takes: [`check`](Self::check) with a
    /// [`wait`](Check::wait) that has no end.
    ///
    /// The decision is a denial only if the call can never be admitted.
    ///
    /// # Errors
    ///
    /// An [`Outage`](crate::Outage), as of [`check`](Self::check).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let limiter = Limiter::in_memory();
    /// let pace = Policy::builder("mail").rule(Rule::sliding_window(10, Duration::from_millis(50))).build()?;
    /// for letter in 0..25 {
    ///     let permit = limiter.acquire(&pace, &Subject::everyone()).await?.permit()?;
    ///     // send it
    /// #   let _ = (letter, permit);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire<'a>(&'a self, policy: &'a Policy, subject: &'a Subject) -> Check<'a> {
        self.check(policy, subject).wait_endlessly()
    }

    /// Tells where `subject` stands and whether a call would be admitted, and counts nothing: [`check`](Self::check) with
    /// [`peek`](Check::peek) and [`report`](Check::report).
    pub fn peek<'a>(&'a self, policy: &'a Policy, subject: &'a Subject) -> Check<'a> {
        self.check(policy, subject).peek().report()
    }

    pub(crate) fn lines(&self) -> &Lines {
        &self.inner.lines
    }

    pub(crate) fn overrides(&self) -> &Overrides {
        &self.inner.overrides
    }

    #[cfg(feature = "redis")]
    pub(crate) fn denials(&self) -> Option<&Denials> {
        self.inner.denials.as_ref()
    }

    /// Has the next calls of these subjects asked about, whatever is remembered of them.
    #[cfg_attr(not(feature = "redis"), allow(clippy::unused_self, unused_variables, reason = "nothing is remembered"))]
    pub(crate) fn forget_denials(&self, request: Request<'_>) {
        #[cfg(feature = "redis")]
        if let Some(denials) = self.denials() {
            denials.forget_all(request, self.clock().now_us());
        }
    }

    #[cfg(feature = "redis")]
    pub(crate) fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.inner.prefix
    }

    pub(crate) fn secret(&self) -> &Secret {
        &self.inner.secret
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.inner.backend
    }

    #[cfg_attr(not(feature = "redis"), allow(unused_variables, reason = "only what others decide is remembered"))]
    fn new(prefix: String, secret: Secret, backend: Backend, clock: &Clock, remember_denials: Duration) -> Self {
        Self {
            inner: Arc::new(Inner {
                prefix,
                secret,
                backend,
                lines: Lines::default(),
                overrides: Overrides::default(),
                #[cfg(feature = "redis")]
                clock: clock.clone(),
                #[cfg(feature = "redis")]
                denials: Denials::new(remember_denials),
            }),
        }
    }
}
