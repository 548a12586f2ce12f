//! The state of one rule that is no sliding window: three integers, like its cell in Redis.

mod bucket;
mod counter;
#[cfg(feature = "cron")]
mod cron;
mod fixed;

use tallygate_rules::{Algorithm, Rule};

use super::wait::Wait;
use crate::backend::{Standing, as_us};

/// What one rule remembers.
///
/// | algorithm | `stamp_us` | `amount` | `other` |
/// | --- | --- | --- | --- |
/// | sliding counter | start of the slot | its weight | weight of the slot before |
/// | fixed window | when it opened | its weight | – |
/// | cron | last hit | weight since the last tick | the tick to come |
/// | token bucket | last hit | level, in tokens · per | when it is unused again |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    stamp_us: u64,
    amount: u64,
    other: u64,
    /// Since when a token bucket has been in use.
    since_us: u64,
}

impl Cell {
    pub(super) fn is_after(self, now_us: u64) -> bool {
        self.stamp_us > now_us
    }

    /// Returns the cell as it is at that time: windows that are over are empty, tokens have flowed in.
    pub(super) fn at(self, rule: &Rule, now_us: u64) -> Self {
        match rule.algorithm() {
            Algorithm::FixedWindow { per } => fixed::at(self, as_us(*per), now_us),
            Algorithm::SlidingCounter { per } => counter::at(self, as_us(*per), now_us),
            Algorithm::TokenBucket(bucket) => bucket::at(self, bucket, rule.count(), now_us),
            #[cfg(feature = "cron")]
            Algorithm::Cron { schedule } => cron::at(self, schedule, now_us),
            _ => self,
        }
    }

    /// Asks a cell of that time how long a call has to wait.
    pub(super) fn wait(self, rule: &Rule, cost: u64, now_us: u64) -> Wait {
        match rule.algorithm() {
            Algorithm::FixedWindow { per } => fixed::wait(self, rule.count(), as_us(*per), cost, now_us),
            Algorithm::SlidingCounter { per } => counter::wait(self, rule.count(), as_us(*per), cost, now_us),
            Algorithm::TokenBucket(bucket) => bucket::wait(self, bucket, rule.count(), cost, now_us),
            #[cfg(feature = "cron")]
            Algorithm::Cron { .. } => cron::wait(self, rule.count(), cost, now_us),
            // Sliding windows have no cell; what is unknown is closed.
            _ => Wait::NEVER,
        }
    }

    /// Tells after what time a call, even if it fits until then, never fits again.
    pub(super) fn lapse(self, rule: &Rule, cost: u64, now_us: u64) -> Option<Wait> {
        match rule.algorithm() {
            Algorithm::TokenBucket(bucket) => bucket::lapse(self, bucket, rule.count(), cost, now_us),
            _ => None,
        }
    }

    /// Returns a cell of that time with the call counted.
    pub(super) fn charged(self, rule: &Rule, cost: u64, now_us: u64) -> Self {
        match rule.algorithm() {
            Algorithm::TokenBucket(bucket) => bucket::charged(self, bucket, rule.count(), cost, now_us),
            #[cfg(feature = "cron")]
            Algorithm::Cron { .. } => Self { stamp_us: now_us, amount: self.amount + cost, ..self },
            _ => Self { amount: self.amount + cost, ..self },
        }
    }

    /// Returns a cell without what a call was counted in it that was admitted then, as far as it still counts.
    pub(super) fn refunded(self, rule: &Rule, cost: u64, admitted_us: u64, now_us: u64) -> Self {
        #[cfg(not(feature = "cron"))]
        let _ = now_us;
        match rule.algorithm() {
            Algorithm::FixedWindow { per } => fixed::refunded(self, as_us(*per), cost, admitted_us),
            Algorithm::SlidingCounter { per } => counter::refunded(self, as_us(*per), cost, admitted_us),
            Algorithm::TokenBucket(bucket) => bucket::refunded(self, bucket, rule.count(), cost, admitted_us),
            #[cfg(feature = "cron")]
            Algorithm::Cron { schedule } => cron::refunded(self, schedule, cost, admitted_us, now_us),
            _ => self,
        }
    }

    /// Tells where a rule stands by its cell of that time.
    pub(super) fn standing(self, rule: &Rule, now_us: u64) -> Standing {
        match rule.algorithm() {
            Algorithm::FixedWindow { per } => fixed::standing(self, rule.count(), as_us(*per), now_us),
            Algorithm::SlidingCounter { per } => counter::standing(self, rule.count(), as_us(*per), now_us),
            Algorithm::TokenBucket(bucket) => bucket::standing(self, bucket, rule.count(), now_us),
            #[cfg(feature = "cron")]
            Algorithm::Cron { .. } => cron::standing(self, rule.count(), now_us),
            _ => Standing::of(0, 0),
        }
    }

    /// Returns when a cell that was charged counts no more.
    pub(super) fn over_us(self, rule: &Rule) -> u64 {
        match rule.algorithm() {
            Algorithm::FixedWindow { per } => self.stamp_us + as_us(*per),
            Algorithm::SlidingCounter { per } => self.stamp_us + 2 * as_us(*per),
            _ => self.other,
        }
    }
}

/// Waits for room that comes at a known time, if the call can fit at all.
fn wait_for_room(used: u64, count: u64, cost: u64, wait: impl FnOnce() -> Wait) -> Wait {
    match count.checked_sub(cost) {
        None => Wait::NEVER,
        Some(most) if used <= most => Wait::NONE,
        Some(_) => wait(),
    }
}
