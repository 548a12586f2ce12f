//! The limiter: what decides calls.

#[cfg(feature = "config")]
mod applied;
mod builder;
mod cached_denials;
mod check;
mod core;
mod denied;
#[cfg(feature = "config")]
mod file_watch;
mod leases;
mod outage;
mod override_builder;
mod overrides;
mod own_thread;
mod pausing;
mod prefetch;
mod registrations;
mod stack;
mod wait_queue;

#[cfg(feature = "admin")]
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use once_cell::sync::{Lazy, OnceCell};

#[cfg(feature = "config")]
pub use self::applied::Applied;
pub use self::builder::LimiterBuilder;
#[cfg(feature = "simulation")]
pub(crate) use self::check::CallSubjects;
pub use self::check::{Check, Deciding};
use self::core::Core;
pub use self::denied::DeniedSubject;
#[cfg(feature = "config")]
pub use self::file_watch::FileWatch;
pub use self::override_builder::OverrideBuilder;
pub use self::overrides::Override;
#[cfg(feature = "testing")]
use crate::context::Context;
use crate::error::{BackendError, Error};
use crate::observe::{ReportedOnce, log};
use crate::policy::{PlanCounts, Policy, registry};
use crate::store::Readiness;
#[cfg(feature = "admin")]
use crate::store::Store;
use crate::subject::SubjectBuilder;
use crate::subject::filters::Secret;
use crate::system::per_process;
use crate::system::under_way::UnderWay;

/// The prefix of all keys when none is set.
pub const DEFAULT_PREFIX: &str = "tallygate";

/// The longest that a decision takes when no deadline is set: 250 milliseconds.
pub const DEFAULT_DEADLINE: Duration = Duration::from_millis(250);

/// The longest that a denial is cached in this process when no other time is set: a second.
pub const DEFAULT_DENIAL_CACHE: Duration = Duration::from_secs(1);

/// The most subjects whose tallies are kept in this process at once, when no other number is set: a million.
pub const DEFAULT_MAX_SUBJECTS: usize = 1_000_000;

/// The most callers that wait for admission in this process at once, when no other number is set: a hundred thousand.
pub const DEFAULT_MAX_WAITING: usize = 100_000;

per_process! {
    static INSTALLED: OnceCell<Limiter> = OnceCell::new();
}

per_process! {
    static FALLBACK: Lazy<Limiter> = Lazy::new(Limiter::in_memory);
}

per_process! {
    static FALLBACK_REPORTED: ReportedOnce = ReportedOnce::new();
}

/// Decides calls: in this process, or in Redis.
///
/// Cloning is cheap: clones share tallies and connection.
#[derive(Clone)]
#[must_use = "a limiter decides nothing until a call is checked; make it the one of annotated functions by `.install()?`"]
pub struct Limiter {
    core: Arc<Core>,
}

impl Limiter {
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
        #[cfg(feature = "testing")]
        if let Some(limiter) = Context::current().and_then(|context| context.test_limiter()?.downcast_ref()) {
            return limiter;
        }
        INSTALLED.get().unwrap_or_else(|| {
            if FALLBACK_REPORTED.is_first() {
                log::no_limiter_installed();
            }
            &FALLBACK
        })
    }

    /// Finds out whether calls can be decided: for the readiness probe of a service.
    ///
    /// It lets Redis decide some calls on keys of their own, which no limit uses, and removes these keys. It needs the
    /// scripts and the permissions that calls need, and asks all masters of a cluster at the same time. Nothing is
    /// counted. It takes at most the [deadline](LimiterBuilder::deadline). While Redis is known to be away, it returns
    /// at once, as a call does. In memory, calls can always be decided.
    ///
    /// # Errors
    ///
    /// Redis, or each master of a cluster, does not answer in time, or answers with an error: it is a replica, is full,
    /// cannot persist what it writes, or refuses a command or a permission.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::{BackendErrorKind, Limiter};
    ///
    /// async fn is_ready() -> bool {
    ///     match Limiter::installed().ping().await {
    ///         Ok(readiness) => readiness.is_complete(),
    ///         // Another process would be no better off: whether such a service is ready is for you to decide.
    ///         Err(error) => error.kind() == BackendErrorKind::Away,
    ///     }
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() { assert!(is_ready().await) }
    /// ```
    pub async fn ping(&self) -> Result<Readiness, BackendError> {
        self.core.stack.store().ping().await
    }

    /// Ends what calls have left to do in the background, before the process ends.
    ///
    /// Background tasks end with the process. A permit that was dropped just before may then keep its place under a
    /// concurrency limit until its lease ends, and a settlement may be lost. So call this at the end of `main`, when the
    /// server has answered its last request.
    ///
    /// It gives back what is left of [units taken ahead](crate::guide::prefetch), and stores pauses that Redis has not heard
    /// of. Then it waits for refunds, settlements, leases and other requests in the background, until they have ended or
    /// the time is over. A decision that a caller awaits is left to that caller. Calls that are still running under a
    /// concurrency limit, or whose [meters](crate::Meter) are in use, are waited for, too. It returns what was under way
    /// when the time was over; in memory, that can only be metered calls and plain functions that wait. A correction that
    /// Redis has refused, or not answered by its deadline, has ended: it is lost, and
    /// [counted as failed](UnderWay::failed_corrections).
    ///
    /// The time is measured by a thread of its own: a callback that blocks, as within
    /// [`on_warning`](LimiterBuilder::on_warning), keeps what waits for it from ending, and not this from returning.
    /// Only the thread on which this is awaited has to be free.
    ///
    /// From then on, also for clones of the limiter, nothing is taken ahead, and
    /// [denied subjects](LimiterBuilder::denied_subjects) are not published any more. Calls are decided as before, and what
    /// they begin is waited for. It may be called again, for example by several parts of a program.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tallygate::Limiter;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// // axum::serve(listener, service).with_graceful_shutdown(asked_to_stop()).await?;
    /// let left = Limiter::installed().drain(Duration::from_secs(5)).await;
    /// if !left.is_nothing() {
    ///     eprintln!("not done before the end: {left}");
    /// }
    /// # assert!(left.is_nothing());
    /// # }
    /// ```
    pub async fn drain(&self, within: Duration) -> UnderWay {
        self.core.runtimes.drain(within, || self.core.send_unsent_pauses()).await
    }

    /// Returns the policy of that name, if this process knows one.
    ///
    /// The process knows the policies of annotated functions, from their first call on or once a file was applied. It
    /// also knows policies that were [built](crate::PolicyBuilder::build) and are still in use, for example by a limit
    /// around a router. If several have this name, it returns the one that was built last; all of them share their
    /// tallies anyway.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tallygate::{Limiter, Rejection, Subject, rate_limit};
    ///
    /// #[rate_limit(name = "sms.send", key = "sms:{phone}", rule(count = 1, per = "60s"))]
    /// async fn send_code(phone: &str) -> Result<(), Rejection> {
    ///     Ok(())
    /// }
    ///
    /// send_code("138").await?;
    /// let policy = Limiter::policy("sms.send").ok_or("it was called")?;
    /// let decision = Limiter::installed().peek(&policy, &Subject::of("sms").and("138")).await?;
    /// assert_eq!(decision.report()[0].remaining(), 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn policy(name: &str) -> Option<Policy> {
        registry::find(name)
    }

    /// Returns all policies that this process knows, as [`policy`](Self::policy) does: ordered by name, and then in the
    /// order in which they were built.
    #[must_use = "nothing is done but to find them"]
    pub fn policies() -> impl Iterator<Item = Policy> {
        registry::all().into_iter()
    }

    /// Starts a subject that renders exactly as a template of the attribute does, `hash` and `subnet` included.
    ///
    /// | template | subject |
    /// | --- | --- |
    /// | `sms:{phone}` | `.text("sms:").value(phone)` |
    /// | `{@user\|@ip}` | `.text("user:").context("user")`, or `.text("ip:").context("ip")` |
    /// | `{ip:subnet}/{path}` | `.value(ip).subnet().text("/").value(path)` |
    /// | `{ip:subnet(24, 56)}` | `.value(ip).subnet_bits(24, 56)` |
    /// | `mail:{email:trim:lower:hash}` | `.text("mail:").value(email).trim().lower().hash()` |
    ///
    /// The filter `hash` needs the secret of the limiter, so use the limiter of the function. If only colons separate
    /// the values, [`Subject::of`](crate::Subject::of) is shorter.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::{Limiter, Subject};
    ///
    /// let limiter = Limiter::in_memory();
    /// let subject = limiter.subject().text("ip:").value("2001:db8::7").subnet().build();
    /// assert_eq!(subject, Subject::of("ip").and("2001:db8::/64"));
    /// ```
    pub fn subject(&self) -> SubjectBuilder<'_> {
        SubjectBuilder::new(self.secret())
    }

    pub(crate) fn secret(&self) -> &Secret {
        &self.core.secret
    }

    #[cfg(feature = "admin")]
    pub(crate) fn store(&self) -> Store<'_> {
        self.core.stack.store()
    }

    #[cfg(feature = "admin")]
    pub(crate) fn prefix(&self) -> &str {
        &self.core.prefix
    }

    /// Whether any override or file puts a policy or its rules in shadow, or takes them out.
    #[inline]
    pub(crate) fn any_sets_shadow(&self) -> bool {
        self.core.overrides.any_sets_shadow()
    }

    /// Returns whether the policy is in shadow: as an override says, or else a file, or else the policy.
    #[inline]
    pub(crate) fn shadow_of(&self, policy: &Policy) -> Option<bool> {
        if !self.any_sets_shadow() {
            return policy.shadow();
        }
        self.core.overrides.shadow_of(policy)
    }

    /// The policy as a file changes it, without overrides; `None` if no file changes it.
    pub(crate) fn changed_by_file(&self, policy: &Policy) -> Option<Policy> {
        self.core.overrides.changed_by_file(policy)
    }

    #[cfg(feature = "admin")]
    pub(crate) fn plans(&self, policy: &Policy) -> BTreeMap<String, PlanCounts> {
        self.core.overrides.plans(policy)
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Core { stack, prefix, .. } = &*self.core;
        f.debug_struct("Limiter").field("store", &stack.store()).field("prefix", prefix).finish_non_exhaustive()
    }
}
