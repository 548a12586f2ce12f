//! Where tallies are kept: in this process, or in Redis.
//!
//! Nothing above this module knows that there is more than one kind of store.

mod answer;
pub(crate) mod memory;
#[cfg(not(feature = "redis"))]
mod no_redis;
#[cfg(feature = "redis")]
pub(crate) mod redis;
mod redis_types;
#[cfg(feature = "admin")]
mod scan;
#[cfg(feature = "admin")]
mod scan_step;
mod standby;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tallygate_rules::{MAX_PER, format_duration};

pub use self::answer::Readiness;
pub(crate) use self::answer::{Answer, Outcome};
pub(crate) use self::memory::Memory;
#[cfg(not(feature = "redis"))]
use self::no_redis as redis;
#[cfg(feature = "tls")]
pub use self::redis::Tls;
#[cfg(feature = "admin")]
pub(crate) use self::redis::{
    Access, CONCURRENT_CALLS, CommandPurpose, Permission, RehearsedStep, SEVERAL_KEYS, Sample, ScriptState,
    ServerFacts, ServerInfo, Times,
};
use self::redis::{Redis, have_clocks_differed};
pub(crate) use self::redis::{StoredDenials, StoredOverrides, StoredPolicies, random_fraction};
pub(crate) use self::redis_types::{Progress, RegistrationResult, Setup, StoredText, stored_operator};
#[cfg(feature = "admin")]
pub(crate) use self::scan::Scan;
pub(crate) use self::standby::Standby;
use crate::call::{Call, PlainCall, ReturnedLeases, TallyId};
use crate::clock::Clock;
use crate::decision::AdmittedAt;
use crate::error::{BackendError, BackendErrorKind, Error};
use crate::micros;
use crate::policy::Policy;

/// A place for tallies.
pub(crate) enum Store {
    Memory(Memory),
    Redis(Redis),
}

/// How a store is made.
impl Store {
    /// Returns a store in this process. Beyond `max_subjects` a new tally replaces an old one.
    pub(crate) fn in_memory(clock: Clock, max_subjects: usize) -> Self {
        Self::Memory(Memory::new(clock, max_subjects))
    }

    /// Returns the store on the server of a URL, to which it connects with the first decision.
    pub(crate) fn of_url(url: &str, setup: Setup) -> Result<Self, Error> {
        Redis::open(url, setup).map(Self::Redis)
    }

    /// Returns the store on the server of a URL, with settings for encrypted connections.
    #[cfg(feature = "tls")]
    pub(crate) fn of_url_with_tls(url: &str, tls: &Tls, setup: Setup) -> Result<Self, Error> {
        Redis::open_with_tls(url, tls, setup).map(Self::Redis)
    }

    /// Returns the store on the server of a client.
    #[cfg(feature = "redis")]
    pub(crate) fn of_client(client: &::redis::Client, setup: Setup) -> Result<Self, Error> {
        Redis::of_client(client, setup).map(Self::Redis)
    }

    /// Connects, so that a wrong set-up is found at start-up.
    pub(crate) async fn reach(&self) -> Result<(), Error> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(redis) => redis.reach().await,
        }
    }
}

/// How calls are decided.
impl Store {
    /// Whether all that is asked here is answered at once: the tallies are in this process.
    #[inline]
    pub(crate) fn decides_at_once(&self) -> bool {
        matches!(self, Self::Memory(_))
    }

    /// Decides a plain call; `None` if it takes awaiting, or a call as [`decide_at_once`](Self::decide_at_once) decides it.
    #[inline]
    pub(crate) fn outcome_at_once(&self, call: PlainCall<'_>) -> Option<Outcome> {
        // One by one: they go in registers.
        let PlainCall { policy, subject, cost } = call;
        match self {
            Self::Memory(memory) => memory.outcome(policy, subject, cost),
            Self::Redis(_) => None,
        }
    }

    /// Decides a call; `None` if it takes awaiting.
    #[inline]
    pub(crate) fn decide_at_once(&self, call: Call<'_>) -> Option<Result<Answer, BackendError>> {
        match self {
            Self::Memory(memory) => Some(memory.decide(call)),
            Self::Redis(_) => None,
        }
    }

    /// Decides a call.
    pub(crate) async fn decide(&self, call: Call<'_>) -> Result<Answer, BackendError> {
        match self {
            Self::Memory(memory) => memory.decide(call),
            Self::Redis(redis) => redis.decide(call).await,
        }
    }

    /// Counts a call that was admitted then as what it has used, in every rule in which it still counts. Returns whether that has
    /// changed anything; `None` if it takes awaiting.
    pub(crate) fn recount_at_once(&self, call: Call<'_>, used: u64, admitted: &AdmittedAt) -> Option<bool> {
        match self {
            Self::Memory(memory) => Some(memory.recount(call, used, admitted)),
            Self::Redis(_) => None,
        }
    }

    /// Counts a call as [`recount_at_once`](Self::recount_at_once) does.
    pub(crate) async fn recount(&self, call: Call<'_>, used: u64, admitted: &AdmittedAt) -> Result<bool, BackendError> {
        match self {
            Self::Memory(memory) => Ok(memory.recount(call, used, admitted)),
            Self::Redis(redis) => redis.recount(call, used, admitted).await,
        }
    }

    /// The longest that a decision by that policy takes; `None` if it is made at once.
    pub(crate) fn deadline_of(&self, policy: &Policy) -> Option<Duration> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(redis) => Some(redis.deadline_of(policy)),
        }
    }

    /// Awaits a future that asks this store, as long as a decision may take.
    ///
    /// Boxed, as it is rare: no other call carries its state.
    pub(crate) fn within_deadline<'a, T: Send>(
        &'a self,
        policy: &'a Policy,
        asking: impl Future<Output = Result<T, BackendError>> + Send + 'a,
    ) -> Pin<Box<dyn Future<Output = Result<T, BackendError>> + Send + 'a>> {
        Box::pin(async move {
            match self {
                Self::Memory(_) => asking.await,
                Self::Redis(redis) => redis.within_deadline(policy, asking).await,
            }
        })
    }

    /// The time by which calls are decided, in microseconds since 1970, as well as this process knows it.
    pub(crate) fn now_us(&self) -> u64 {
        match self {
            Self::Memory(memory) => memory.now_us(),
            Self::Redis(redis) => redis.now_us(),
        }
    }

    /// Asks a server for its time, which every decision also does.
    pub(crate) async fn refresh_time(&self) -> Result<(), BackendError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(redis) => redis.refresh_time().await,
        }
    }
}

/// Whether calls can be decided.
impl Store {
    /// Finds out whether calls can be decided.
    pub(crate) async fn ping(&self) -> Result<Readiness, BackendError> {
        match self {
            Self::Memory(_) => Ok(Readiness::COMPLETE),
            Self::Redis(redis) => redis.ping().await,
        }
    }
}

/// What knows of itself whether it is away.
pub(crate) trait MayBeAway {
    /// Why no calls are decided, as far as this process knows without asking; `None` if they may be decided.
    fn known_outage(&self) -> Option<BackendErrorKind>;

    /// Whether a server has decided a call. Until then, nothing shows that the set-up is right.
    fn has_decided(&self) -> bool;

    /// Whether tokio's clock was ever seen to differ from the system's, as it does where a test pauses it.
    fn have_clocks_differed(&self) -> bool;
}

impl MayBeAway for Store {
    fn known_outage(&self) -> Option<BackendErrorKind> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(redis) => redis.known_outage(),
        }
    }

    fn has_decided(&self) -> bool {
        match self {
            Self::Memory(_) => false,
            Self::Redis(redis) => redis.has_decided(),
        }
    }

    fn have_clocks_differed(&self) -> bool {
        have_clocks_differed()
    }
}

/// Leases of concurrent calls.
impl Store {
    /// Gives the leases of a call back, if they are in this process.
    pub(crate) fn give_back_at_once(&self, leases: Call<'_>) {
        match self {
            Self::Memory(memory) => memory.give_back(leases),
            Self::Redis(_) => {}
        }
    }

    /// Gives leases back that are on a server. Leases that are not there change nothing.
    pub(crate) async fn give_back(&self, policy: &Policy, leases: &[ReturnedLeases]) -> Result<(), BackendError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(redis) => redis.give_back(policy, leases).await,
        }
    }

    /// Renews the leases of a call. In memory they last until they are given back.
    pub(crate) async fn renew_leases(&self, leases: Call<'_>) -> Result<(), BackendError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(redis) => redis.renew_leases(leases).await,
        }
    }
}

/// What operators do.
impl Store {
    /// Removes the tallies of such a call.
    pub(crate) async fn reset(&self, call: Call<'_>) -> Result<(), BackendError> {
        match self {
            Self::Memory(memory) => {
                memory.reset(call);
                Ok(())
            }
            Self::Redis(redis) => redis.reset(call).await,
        }
    }

    /// Bans the main subject of such a call for that long, or ends its ban.
    pub(crate) async fn ban(&self, call: Call<'_>, duration: Duration) -> Result<(), BackendError> {
        let (id, duration_us) = ban(call, duration)?;
        match self {
            Self::Memory(memory) => memory.ban(id, duration_us),
            Self::Redis(redis) => redis.ban(id, duration_us).await,
        }
    }

    /// Starts a walk over the tallies of the rule groups whose segments have these names before the layout.
    #[cfg(feature = "admin")]
    pub(crate) async fn scan(&self, prefix: &str, names: &[String]) -> Result<Scan<'_>, BackendError> {
        Ok(match self {
            Self::Memory(memory) => Scan::Memory(memory, memory.scan(names)),
            Self::Redis(redis) => Scan::Redis(redis, redis.scan(prefix, names).await?),
        })
    }

    /// Looks at each server. In memory there is none.
    #[cfg(feature = "admin")]
    pub(crate) async fn inspect(&self) -> Result<Vec<ServerFacts>, BackendError> {
        match self {
            Self::Memory(_) => Ok(Vec::new()),
            Self::Redis(redis) => redis.inspect().await,
        }
    }
}

/// What the processes of a service share beside tallies. In memory, a process shares nothing.
impl Store {
    /// The overrides that all processes adopt.
    pub(crate) fn overrides(&self) -> Option<StoredOverrides<'_>> {
        self.shared().map(Redis::overrides)
    }

    /// The list of policies.
    pub(crate) fn policies(&self) -> Option<StoredPolicies<'_>> {
        self.shared().map(Redis::policies)
    }

    /// The denied subjects that processes publish.
    pub(crate) fn denials(&self) -> Option<StoredDenials<'_>> {
        self.shared().map(Redis::denials)
    }

    fn shared(&self) -> Option<&Redis> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(redis) => Some(redis),
        }
    }
}

/// Shows where the tallies are, and nothing of them.
impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(memory) => memory.fmt(f),
            Self::Redis(_) => f.write_str("Redis"),
        }
    }
}

/// Returns the tally of the main subject of such a call, and how long a ban of that duration lasts.
///
/// # Errors
///
/// The policy has no ban, or the duration is longer than any ban.
fn ban(call: Call<'_>, duration: Duration) -> Result<(TallyId<'_>, u64), BackendError> {
    let Some(id) = call.tally_ids().next().filter(|id| id.group.ban.is_some()) else {
        let name = call.policy.name();
        return Err(BackendError::misuse(format!("policy `{name}` has no ban; give it one with `PolicyBuilder::ban`")));
    };
    if duration > MAX_PER {
        let longest = format_duration(MAX_PER);
        return Err(BackendError::misuse(format!("a ban lasts {longest} at most; give it a shorter `duration`")));
    }
    // Rounded up, as a ban of no time at all ends the one that there is.
    let duration_us = micros::from_duration(duration) + u64::from(!duration.subsec_nanos().is_multiple_of(1_000));
    Ok((id, duration_us))
}
