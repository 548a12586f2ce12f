//! Where tallies are kept: in this process, or in Redis. Above this module, a store is a `Decider`; only the code that builds a
//! limiter chooses which.

mod answer;
mod decider;
pub(crate) mod memory;
#[cfg(not(feature = "redis"))]
mod no_redis;
mod override_store;
#[cfg(feature = "redis")]
pub(crate) mod redis;
mod redis_types;
#[cfg(feature = "admin")]
mod scan;
mod standby;
#[cfg(test)]
pub(crate) mod stub;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::answer::Readiness;
pub(crate) use self::answer::{Answer, LayeredAnswer, LeaseHolder, Outcome};
use self::decider::tally_to_ban;
pub(crate) use self::decider::{Decider, RemoteStore};
pub(crate) use self::memory::Memory;
#[cfg(not(feature = "redis"))]
use self::no_redis as redis;
pub(crate) use self::override_store::OverrideStore;
pub(crate) use self::redis::Redis;
#[cfg(feature = "tls")]
pub use self::redis::Tls;
#[cfg(feature = "admin")]
pub(crate) use self::redis::{
    Access, CONCURRENT_CALLS, CommandPurpose, Permission, RehearsedStep, SEVERAL_KEYS, Sample, ScriptState,
    ServerFacts, ServerInfo, Times,
};
pub(crate) use self::redis::{StoredDenials, StoredPolicies, random_fraction};
pub(crate) use self::redis_types::{Progress, RegistrationResult, Setup, StoredText, stored_operator};
#[cfg(feature = "admin")]
pub(crate) use self::scan::Scan;
pub(crate) use self::standby::Standby;
use crate::call::{Call, PlainCall};
use crate::clock::Clock;
use crate::decision::{AdmittedAt, Recount};
use crate::error::{BackendError, Error};
use crate::policy::Policy;

pub(crate) enum Store {
    Memory(Memory),
    Redis(Arc<Redis>),
}

impl Store {
    /// Returns a store in this process. If it has `max_subjects` tallies, a new one replaces an old one.
    pub(crate) fn in_memory(clock: Clock, max_subjects: usize) -> Self {
        Self::Memory(Memory::new(clock, max_subjects))
    }

    /// Returns the store on the server at this URL. It connects for the first decision.
    pub(crate) fn of_url(url: &str, setup: Setup) -> Result<Self, Error> {
        Redis::open(url, setup).map(Arc::new).map(Self::Redis)
    }

    /// Returns the store on the server at this URL, with settings for encrypted connections.
    #[cfg(feature = "tls")]
    pub(crate) fn of_url_with_tls(url: &str, tls: &Tls, setup: Setup) -> Result<Self, Error> {
        Redis::open_with_tls(url, tls, setup).map(Arc::new).map(Self::Redis)
    }

    #[cfg(feature = "redis")]
    pub(crate) fn of_client(client: &::redis::Client, setup: Setup) -> Result<Self, Error> {
        Redis::of_client(client, setup).map(Arc::new).map(Self::Redis)
    }

    /// Connects, so that a wrong setup is found at start-up.
    pub(crate) async fn reach(&self) -> Result<(), Error> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(redis) => redis.reach().await,
        }
    }
}

impl Decider for Store {
    #[inline]
    fn decide_at_once(&self, call: Call<'_>) -> Option<Result<LayeredAnswer, BackendError>> {
        self.memory().map(|memory| memory.decide(call).map(LayeredAnswer::from))
    }

    async fn decide(&self, call: Call<'_>) -> Result<LayeredAnswer, BackendError> {
        match self {
            Self::Memory(memory) => memory.decide(call).map(LayeredAnswer::from),
            Self::Redis(redis) => redis.decide(call).await,
        }
    }

    // A store knows nothing but its tallies.
    fn note(&self, _: Call<'_>, _: Outcome, _: u64) {}

    fn forget(&self, _: Call<'_>) {}

    async fn recount(&self, counted: Call<'_>, recount: Recount, admitted: &AdmittedAt) -> Result<bool, BackendError> {
        match self {
            Self::Memory(memory) => Ok(memory.recount(recount.of(counted), recount.used, admitted)),
            Self::Redis(redis) => redis.recount(counted, recount, admitted).await,
        }
    }

    async fn reset(&self, call: Call<'_>) -> Result<(), BackendError> {
        match self {
            Self::Memory(memory) => {
                memory.reset(call);
                Ok(())
            }
            Self::Redis(redis) => redis.reset(call).await,
        }
    }

    async fn ban(&self, call: Call<'_>, duration: Duration) -> Result<(), BackendError> {
        match self {
            Self::Memory(memory) => {
                let (id, duration_us) = tally_to_ban(call, duration)?;
                memory.ban(id, duration_us)
            }
            Self::Redis(redis) => redis.ban(call, duration).await,
        }
    }
}

impl Store {
    /// Decides a plain call; `None` if that takes awaiting, or if the call cannot be decided as a plain one.
    #[inline]
    pub(crate) fn outcome_at_once(&self, call: PlainCall<'_>) -> Option<Outcome> {
        // Passed one by one, so that they go in registers.
        let PlainCall { policy, subject, cost } = call;
        match self {
            Self::Memory(memory) => memory.outcome(policy, subject, cost),
            Self::Redis(_) => None,
        }
    }

    /// Returns the store in this process; `None` for Redis. It answers at once.
    #[inline]
    pub(crate) fn memory(&self) -> Option<&Memory> {
        match self {
            Self::Memory(memory) => Some(memory),
            Self::Redis(_) => None,
        }
    }

    /// Returns the store in Redis; `None` for memory.
    pub(crate) fn redis(&self) -> Option<&Arc<Redis>> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(redis) => Some(redis),
        }
    }

    /// The longest time that a decision by this policy takes; `None` if it is made at once.
    pub(crate) fn deadline_of(&self, policy: &Policy) -> Option<Duration> {
        self.redis().map(|redis| redis.deadline_of(policy))
    }

    /// The time by which calls are decided, in microseconds since 1970. For Redis, it is estimated.
    pub(crate) fn now_us(&self) -> u64 {
        match self {
            Self::Memory(memory) => memory.now_us(),
            Self::Redis(redis) => redis.now_us(),
        }
    }

    /// Asks a server for its time. Every decision also does that.
    pub(crate) async fn refresh_time(&self) -> Result<(), BackendError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(redis) => redis.refresh_time().await,
        }
    }
}

impl Store {
    /// Finds out whether calls can be decided.
    pub(crate) async fn ping(&self) -> Result<Readiness, BackendError> {
        match self {
            Self::Memory(_) => Ok(Readiness::COMPLETE),
            Self::Redis(redis) => redis.ping().await,
        }
    }
}

#[cfg(feature = "admin")]
impl Store {
    /// Starts to scan the tallies of the rule groups whose segments begin with these names, before the layout.
    pub(crate) async fn scan(&self, prefix: &str, names: &[String]) -> Result<Scan<'_>, BackendError> {
        Ok(match self {
            Self::Memory(memory) => Scan::Memory(memory, memory.scan(names)),
            Self::Redis(redis) => Scan::Redis(redis, redis.scan(prefix, names).await?),
        })
    }

    /// Looks at each server. In memory, there is none.
    pub(crate) async fn inspect(&self) -> Result<Vec<ServerFacts>, BackendError> {
        match self {
            Self::Memory(_) => Ok(Vec::new()),
            Self::Redis(redis) => redis.inspect().await,
        }
    }
}

/// What processes share beside tallies; `None` in memory, where nothing is shared.
impl Store {
    /// The registry of policies.
    pub(crate) fn policies(&self) -> Option<StoredPolicies<'_>> {
        self.redis().map(|redis| redis.policies())
    }

    /// The denied subjects that processes publish.
    pub(crate) fn denials(&self) -> Option<StoredDenials<'_>> {
        self.redis().map(|redis| redis.denials())
    }
}

/// Shows where the tallies are, but no tally.
impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(memory) => memory.fmt(f),
            Self::Redis(_) => f.write_str("Redis"),
        }
    }
}
