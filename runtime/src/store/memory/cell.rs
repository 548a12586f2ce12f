//! The state of one rule that is no sliding window: three integers, like its cell in Redis.

mod bucket;
mod counter;
mod state;
mod window;

use tallygate_rules::{Algorithm, Rule};

pub(super) use self::state::Cell;
use crate::decision::{CostChange, Quota, Wait};
use crate::micros;

impl Cell {
    /// Returns the cell as it is at that time: windows that are over are empty, tokens have flowed in.
    pub(super) fn at(self, rule: &Rule, now_us: u64) -> Self {
        match rule.algorithm() {
            Algorithm::FixedWindow { per } => window::at(self, micros::from_duration(*per), now_us),
            Algorithm::SlidingCounter { per } => counter::at(self, micros::from_duration(*per), now_us),
            Algorithm::TokenBucket(bucket) => bucket::at(self, bucket, rule.count(), now_us),
            #[cfg(feature = "cron")]
            Algorithm::Cron { schedule } => window::at_ticks(self, schedule, now_us),
            _ => self,
        }
    }

    /// Asks a cell of that time how long a call has to wait.
    pub(super) fn wait(self, rule: &Rule, cost: u64, now_us: u64) -> Wait {
        match rule.algorithm() {
            Algorithm::FixedWindow { per } => {
                window::wait(self, rule.count(), self.stamp_us + micros::from_duration(*per), cost, now_us)
            }
            Algorithm::SlidingCounter { per } => {
                counter::wait(self, rule.count(), micros::from_duration(*per), cost, now_us)
            }
            Algorithm::TokenBucket(bucket) => bucket::wait(self, bucket, rule.count(), cost, now_us),
            #[cfg(feature = "cron")]
            Algorithm::Cron { .. } => window::wait(self, rule.count(), self.other, cost, now_us),
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

    /// Returns the cell with what a call has used that was admitted then, where that still counts.
    pub(super) fn refunded(self, rule: &Rule, costs: CostChange, admitted_us: u64, now_us: u64) -> Self {
        // A cell that is later than now is as good as forgotten.
        if self.is_after(now_us) {
            return self;
        }
        match rule.algorithm() {
            Algorithm::FixedWindow { per } => {
                window::refunded(self, micros::from_duration(*per), costs, admitted_us, now_us)
            }
            Algorithm::SlidingCounter { per } => {
                counter::refunded(self, micros::from_duration(*per), costs, admitted_us, now_us)
            }
            Algorithm::TokenBucket(bucket) => bucket::refunded(self, bucket, rule.count(), costs, admitted_us, now_us),
            #[cfg(feature = "cron")]
            Algorithm::Cron { schedule } => window::refunded_within_ticks(self, schedule, costs, admitted_us, now_us),
            _ => self,
        }
    }

    /// Tells where a rule stands by its cell of that time.
    pub(super) fn quota(self, rule: &Rule, now_us: u64) -> Quota {
        match rule.algorithm() {
            Algorithm::FixedWindow { per } => {
                window::quota(self, rule.count(), self.stamp_us + micros::from_duration(*per), now_us)
            }
            Algorithm::SlidingCounter { per } => {
                counter::quota(self, rule.count(), micros::from_duration(*per), now_us)
            }
            Algorithm::TokenBucket(bucket) => bucket::quota(self, bucket, rule.count(), now_us),
            #[cfg(feature = "cron")]
            Algorithm::Cron { .. } => window::quota(self, rule.count(), self.other, now_us),
            _ => Quota::new(0, 0),
        }
    }

    /// Returns when a cell that was charged counts no more.
    pub(super) fn expires_us(self, rule: &Rule) -> u64 {
        match rule.algorithm() {
            Algorithm::FixedWindow { per } => self.stamp_us + micros::from_duration(*per),
            Algorithm::SlidingCounter { per } => self.stamp_us + 2 * micros::from_duration(*per),
            _ => self.other,
        }
    }
}
