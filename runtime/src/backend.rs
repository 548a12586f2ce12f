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

use crate::Policy;
use crate::key::Key;

/// One call to decide: charge every rule of every subject, or none.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) policy: &'a Policy,
    /// The key of each subject's tally, in the order of the policy's groups.
    pub(crate) keys: &'a [Key],
    pub(crate) cost: u64,
    /// Whether to tell where every rule stands.
    pub(crate) report: bool,
}

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) verdict: Verdict,
    /// Where every rule stands afterwards, in the order of the groups' rules; empty unless asked for.
    pub(crate) standings: Vec<Standing>,
}

/// Whether the call was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Admitted,
    /// The rule to name, and how long until the same call would be admitted: `None` is never.
    Denied {
        rule: usize,
        retry_after: Option<Duration>,
    },
}

/// Where a rule stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The greatest cost that would be admitted now.
    pub(crate) remaining: u64,
    /// The time until the rule is as if it had never counted.
    pub(crate) reset: Duration,
}

impl Standing {
    pub(crate) fn of(remaining: u64, reset_us: u64) -> Self {
        Self { remaining, reset: Duration::from_micros(reset_us) }
    }
}

/// Where tallies are kept.
#[derive(Debug)]
pub(crate) enum Backend {
    Memory(Memory),
    #[cfg(feature = "redis")]
    Redis(Redis),
}

/// Durations here are far below 2^53 microseconds: the clock's, and validated ones.
pub(crate) fn as_us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
