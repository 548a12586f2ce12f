//! The one seam: what is asked of a storage, and what it answers.
//!
//! This is the only place that knows there is more than one kind of storage.

mod memory;
#[cfg(feature = "redis")]
mod redis;

use std::time::Duration;

pub(crate) use memory::Memory;
#[cfg(feature = "redis")]
pub(crate) use redis::Redis;
use tallygate_rules::Rule;

use crate::Outage;
use crate::key::Key;

/// One call to decide: charge every rule, or none.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) key: &'a Key,
    pub(crate) rules: &'a [Rule],
    pub(crate) cost: u64,
}

/// The answer to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Admitted,
    /// The rule to name, and how long until the same call would be admitted: `None` is never.
    Denied {
        rule: usize,
        retry_after: Option<Duration>,
    },
}

/// Where tallies are kept.
#[derive(Debug)]
pub(crate) enum Backend {
    Memory(Memory),
    #[cfg(feature = "redis")]
    Redis(Redis),
}

impl Backend {
    pub(crate) async fn decide(&self, request: Request<'_>) -> Result<Reply, Outage> {
        match self {
            Self::Memory(memory) => Ok(memory.decide(request)),
            // Boxed: the future of an annotated function should not carry the state of a network call.
            #[cfg(feature = "redis")]
            Self::Redis(redis) => Box::pin(redis.decide(request)).await,
        }
    }
}
