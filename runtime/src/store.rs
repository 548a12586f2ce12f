//! Where tallies are kept: in this process, or in Redis.
//!
//! Nothing above this module knows that there is more than one kind of store.

mod answer;
pub(crate) mod memory;
#[cfg(feature = "redis")]
pub(crate) mod redis;
mod request;
mod tally_id;
mod tally_key;

use std::time::Duration;

use tallygate_rules::MAX_PER;

pub(crate) use self::answer::{Answer, Outcome};
pub(crate) use self::memory::Memory;
#[cfg(feature = "redis")]
pub(crate) use self::redis::{Redis, StoredOverride};
pub(crate) use self::request::{CallOptions, Request, WaitLimit};
#[cfg(feature = "redis")]
pub(crate) use self::tally_id::TallyId;
pub(crate) use self::tally_key::{PREFIX_BYTES, TallyKey};
use crate::error::BackendError;
use crate::micros;

/// A place for tallies.
#[derive(Debug)]
pub(crate) enum Store {
    Memory(Memory),
    #[cfg(feature = "redis")]
    Redis(Redis),
}

#[cfg_attr(not(feature = "redis"), allow(clippy::unused_async, reason = "memory answers at once"))]
impl Store {
    /// The time by which calls are decided, in microseconds since 1970.
    pub(crate) fn now_us(&self) -> u64 {
        match self {
            Self::Memory(memory) => memory.now_us(),
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.now_us(),
        }
    }

    /// Removes the hits of a call that was admitted then, from every rule in which they still count; returns whether there
    /// was one.
    pub(crate) async fn refund(&self, request: Request<'_>, admitted_us: u64) -> Result<bool, BackendError> {
        match self {
            Self::Memory(memory) => Ok(memory.refund(request, admitted_us)),
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.refund(request, admitted_us).await,
        }
    }

    /// Removes the tallies of such a call.
    pub(crate) async fn reset(&self, request: Request<'_>) -> Result<(), BackendError> {
        match self {
            Self::Memory(memory) => {
                memory.reset(request);
                Ok(())
            }
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.reset(request).await,
        }
    }

    /// Bans the main subject of such a call for that long, or ends its ban.
    pub(crate) async fn ban(&self, request: Request<'_>, duration: Duration) -> Result<(), BackendError> {
        let Some(id) = request.tally_ids().next().filter(|id| id.group.ban.is_some()) else {
            let name = request.policy.name();
            return Err(BackendError::new(format!(
                "policy `{name}` has no ban; give it one with `PolicyBuilder::ban`"
            )));
        };
        let duration = duration.min(MAX_PER);
        // Rounded up, as a ban of no time at all ends the one that there is.
        let duration_us = micros::from_duration(duration) + u64::from(!duration.subsec_nanos().is_multiple_of(1_000));
        match self {
            Self::Memory(memory) => memory.ban(id, duration_us),
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.ban(id, duration_us).await,
        }
    }
}
