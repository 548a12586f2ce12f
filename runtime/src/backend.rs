//! The one seam: what is asked of a storage, and what it answers.
//!
//! This is the only place that knows there is more than one kind of storage.

mod memory;
mod name;
#[cfg(feature = "redis")]
mod redis;

use std::time::Duration;

use tallygate_rules::MAX_PER;

pub(crate) use memory::Memory;
pub(crate) use name::Name;
#[cfg(feature = "redis")]
pub(crate) use redis::Redis;

#[cfg(feature = "redis")]
use crate::key::Key;
use crate::key::Short;
use crate::{Outage, Policy};

/// One call to decide: charge every rule of every subject, or none.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) policy: &'a Policy,
    /// The subject of each of the policy's groups, in their order.
    pub(crate) subjects: &'a [Short],
    pub(crate) cost: u64,
    /// Whether to tell where every rule stands.
    pub(crate) report: bool,
    /// Whether to decide only, and charge nothing.
    pub(crate) peek: bool,
}

impl<'a> Request<'a> {
    /// The tallies that it is decided by, in the order of the policy's groups.
    pub(crate) fn names(self) -> impl Iterator<Item = Name<'a>> + Clone {
        let policy = self.policy;
        let groups = policy.groups().iter().enumerate();
        groups.zip(self.subjects).map(move |((index, group), subject)| Name { policy, index, group, subject })
    }

    /// Their keys, in the same order.
    #[cfg(feature = "redis")]
    pub(crate) fn keys<'k>(self, prefix: &'k str) -> impl Iterator<Item = Key> + Clone + use<'a, 'k> {
        self.names().map(move |name| Key::new(prefix, &name.group.segment, name.subject))
    }
}

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) verdict: Verdict,
    /// Where every rule stands afterwards, in the order of the groups' rules; empty unless asked for.
    pub(crate) standings: Vec<Standing>,
    /// The time of the decision, in microseconds since 1970 by the storage's clock.
    pub(crate) at_us: u64,
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
    /// A subject is banned, for that long.
    Banned {
        retry_after: Duration,
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

#[cfg_attr(not(feature = "redis"), allow(clippy::unused_async, reason = "memory answers at once"))]
impl Backend {
    /// Takes back the hits of a call that was admitted then; tells whether there were any.
    pub(crate) async fn refund(&self, request: Request<'_>, admitted_us: u64) -> Result<bool, Outage> {
        match self {
            Self::Memory(memory) => Ok(memory.refund(request, admitted_us)),
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.refund(request, admitted_us).await,
        }
    }

    /// Forgets the tallies of such a call.
    pub(crate) async fn reset(&self, request: Request<'_>) -> Result<(), Outage> {
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
    pub(crate) async fn ban(&self, request: Request<'_>, duration: Duration) -> Result<(), Outage> {
        let Some(name) = request.names().next().filter(|name| name.group.ban.is_some()) else {
            let name = request.policy.name();
            return Err(Outage::new(format!("policy `{name}` has no ban; give it one with `PolicyBuilder::ban`")));
        };
        let duration = duration.min(MAX_PER);
        // Rounded up, as a ban of no time at all ends the one that there is.
        let duration_us = as_us(duration) + u64::from(!duration.subsec_nanos().is_multiple_of(1_000));
        match self {
            Self::Memory(memory) => memory.ban(name, duration_us),
            #[cfg(feature = "redis")]
            Self::Redis(redis) => redis.ban(name, duration_us).await,
        }
    }
}

/// Durations here are far below 2^53 microseconds: the clock's, and validated ones. Longer ones are endless.
#[inline]
pub(crate) fn as_us(duration: Duration) -> u64 {
    // Not by `as_micros`, which calculates in 128 bits.
    duration.as_secs().saturating_mul(1_000_000).saturating_add(u64::from(duration.subsec_micros()))
}
