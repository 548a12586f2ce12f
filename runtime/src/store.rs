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
    Access, CommandPurpose, Permission, RehearsedStep, SEVERAL_KEYS, Sample, ScriptState, ServerFacts, ServerInfo,
    Times,
};
pub(crate) use self::redis::{Redis, have_clocks_differed, random_fraction};
pub(crate) use self::redis_types::{Progress, RegistrationResult, Setup, StoredText, stored_operator};
#[cfg(feature = "admin")]
pub(crate) use self::scan::Scan;
pub(crate) use self::standby::Standby;
use crate::call::{Call, TallyId};
use crate::error::BackendError;
use crate::micros;

/// A place for tallies.
#[derive(Debug)]
pub(crate) enum Store {
    Memory(Memory),
    Redis(Redis),
}

impl Store {
    /// The time by which calls are decided, in microseconds since 1970.
    pub(crate) fn now_us(&self) -> u64 {
        match self {
            Self::Memory(memory) => memory.now_us(),
            Self::Redis(redis) => redis.now_us(),
        }
    }

    /// Finds out whether calls can be decided.
    pub(crate) async fn ping(&self) -> Result<Readiness, BackendError> {
        match self {
            Self::Memory(_) => Ok(Readiness::COMPLETE),
            Self::Redis(redis) => redis.ping().await,
        }
    }

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

    /// Starts a walk over the tallies of the rule groups whose segments have these names before the layout.
    #[cfg(feature = "admin")]
    pub(crate) async fn scan(&self, prefix: &str, names: &[String]) -> Result<Scan<'_>, BackendError> {
        Ok(match self {
            Self::Memory(memory) => Scan::Memory(memory, memory.scan(names)),
            Self::Redis(redis) => Scan::Redis(redis, redis.scan(prefix, names).await?),
        })
    }

    /// Bans the main subject of such a call for that long, or ends its ban.
    pub(crate) async fn ban(&self, call: Call<'_>, duration: Duration) -> Result<(), BackendError> {
        let (id, duration_us) = ban(call, duration)?;
        match self {
            Self::Memory(memory) => memory.ban(id, duration_us),
            Self::Redis(redis) => redis.ban(id, duration_us).await,
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
