//! Where tallies are kept: in this process, or in Redis.

mod answer;
mod decider;
pub(crate) mod memory;
#[cfg(not(feature = "redis"))]
mod no_redis;
mod outcome_builder;
mod pauses;
#[cfg(feature = "redis")]
pub(crate) mod redis;
mod redis_types;
mod standby;
#[cfg(test)]
pub(crate) mod stub;

use std::fmt;
use std::time::Duration;

pub use self::answer::Readiness;
pub(crate) use self::answer::{Answer, LayeredAnswer, LeaseHolder, Outcome};
pub(crate) use self::decider::{Decider, OverrideStore, RemoteStore};
pub(crate) use self::memory::{FreedTally, Memory};
#[cfg(not(feature = "redis"))]
use self::no_redis as redis;
pub(crate) use self::pauses::{KnownPause, PauseDue, PauseMoment, PauseToSend, Pauses, ProbeStep};
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
pub(crate) use self::standby::Standby;
use crate::error::{BackendError, Error};
use crate::policy::Policy;

/// Where the tallies of a limiter are.
#[derive(Clone, Copy)]
pub(crate) enum Store<'a> {
    Memory(&'a Memory),
    Redis(&'a Redis),
}

impl<'a> Store<'a> {
    /// Returns the store in Redis; `None` for memory.
    fn redis(self) -> Option<&'a Redis> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(redis) => Some(redis),
        }
    }

    /// Connects, so that a wrong setup is found at start-up.
    pub(crate) async fn reach(self) -> Result<(), Error> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(redis) => redis.reach().await,
        }
    }

    /// Finds out whether calls can be decided.
    pub(crate) async fn ping(self) -> Result<Readiness, BackendError> {
        match self {
            Self::Memory(_) => Ok(Readiness::COMPLETE),
            Self::Redis(redis) => redis.ping().await,
        }
    }

    /// The longest time that a decision by this policy takes; `None` if it is made at once.
    pub(crate) fn deadline_of(self, policy: &Policy) -> Option<Duration> {
        self.redis().map(|redis| redis.deadline_of(policy))
    }

    /// The time by which calls are decided, in microseconds since 1970. For Redis, it is estimated.
    pub(crate) fn now_us(self) -> u64 {
        match self {
            Self::Memory(memory) => memory.now_us(),
            Self::Redis(redis) => redis.now_us(),
        }
    }

    /// Asks a server for its time. Every decision also does that.
    pub(crate) async fn refresh_time(self) -> Result<(), BackendError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(redis) => redis.refresh_time().await,
        }
    }
}

#[cfg(feature = "admin")]
impl<'a> Store<'a> {
    /// Starts to scan the tallies of these rule groups, each given by its segment without the layout.
    pub(crate) async fn scan(self, prefix: &str, names: &[String]) -> Result<Scan<'a>, BackendError> {
        Ok(match self {
            Self::Memory(memory) => Scan::Memory(memory, memory.scan(names)),
            Self::Redis(redis) => Scan::Redis(redis, redis.scan(prefix, names).await?),
        })
    }

    /// Looks at each server. In memory, there is none.
    pub(crate) async fn inspect(self) -> Result<Vec<ServerFacts>, BackendError> {
        match self {
            Self::Memory(_) => Ok(Vec::new()),
            Self::Redis(redis) => redis.inspect().await,
        }
    }
}

/// What processes share beside tallies; `None` in memory, where nothing is shared.
impl<'a> Store<'a> {
    /// The registry of policies.
    pub(crate) fn policies(self) -> Option<StoredPolicies<'a>> {
        self.redis().map(Redis::policies)
    }

    /// The denied subjects that processes publish.
    pub(crate) fn denials(self) -> Option<StoredDenials<'a>> {
        self.redis().map(Redis::denials)
    }
}

/// Shows where the tallies are, but no tally.
impl fmt::Debug for Store<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(memory) => memory.fmt(f),
            Self::Redis(_) => f.write_str("Redis"),
        }
    }
}

/// A scan of the tallies of some rule groups, whatever their layout.
#[cfg(feature = "admin")]
pub(crate) enum Scan<'a> {
    Memory(&'a Memory, memory::ShardScan),
    Redis(&'a Redis, redis::KeyScan),
}

#[cfg(feature = "admin")]
impl Scan<'_> {
    /// Makes one step; `None` at the end.
    pub(crate) async fn step(&mut self) -> Result<Option<answer::ScanStep>, BackendError> {
        match self {
            Self::Memory(memory, scan) => Ok(memory.step(scan)),
            Self::Redis(redis, scan) => redis.step(scan).await,
        }
    }

    /// Returns which shard or server comes next, and the cursor there; `None` at the end.
    #[cfg(feature = "web")]
    pub(crate) fn upcoming(&self) -> Option<(usize, u64)> {
        match self {
            Self::Memory(_, scan) => scan.upcoming(),
            Self::Redis(_, scan) => scan.upcoming(),
        }
    }

    /// Goes on with this shard or server, at this cursor; returns whether it exists.
    #[cfg(feature = "web")]
    pub(crate) fn go_to(&mut self, place: (usize, u64)) -> bool {
        match self {
            Self::Memory(_, scan) => scan.go_to(place),
            Self::Redis(_, scan) => scan.go_to(place),
        }
    }
}
