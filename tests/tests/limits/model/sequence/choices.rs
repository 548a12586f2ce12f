//! The random choices of a sequence: costs and times, mostly where something is about to change.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use tallygate::{Algorithm, Rule};
use tallygate_harness::model::{Costs, Ticket, UNITS, Used};

use super::Sequence;
use crate::model::policies::{Concurrency, LEASE};

/// The most steps of a sequence.
const STEPS: usize = 180;

/// The random choices of a sequence. Each step has its own, so that a failing sequence is made shorter by leaving out
/// steps: the others remain as they are.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    pub(super) set_up: u64,
    pub(super) steps: Vec<u64>,
}

/// Returns random choices.
pub(crate) fn choices() -> impl Strategy<Value = Choices> {
    let seed = || any::<u64>().no_shrink();
    (seed(), vec(seed(), 1..=STEPS)).prop_map(|(set_up, steps)| Choices { set_up, steps })
}

impl Sequence<'_> {
    pub(super) fn costs(&mut self, version: usize) -> Costs {
        let most = if self.versions[version].plan.is_paid_in_calls() { u64::MAX } else { 1 };
        let calls = self.cost(version, None).min(most);
        let units = UNITS.map(|unit| (self.random.u8(0..6) > 0).then(|| self.cost(version, Some(unit))));
        Costs { calls, units }
    }

    fn cost(&mut self, version: usize, unit: Option<&str>) -> u64 {
        let rules = self.versions[version].policy.rules().iter().filter(|rule| rule.unit() == unit);
        let rules: Vec<_> = rules.collect();
        if rules.is_empty() {
            return self.random.u64(0..3);
        }
        let limit = |rule: &&Rule| rule.capacity().unwrap_or(rule.count());
        let (rule, least) = (self.random.choice(&rules).unwrap(), rules.iter().map(limit).min().unwrap());
        match self.random.u8(0..16) {
            0 => 0,
            1 => limit(rule),
            2 => limit(rule) + 1,
            3 => least,
            4 => self.random.u64(0..=limit(rule)),
            5 | 6 => self.random.u64(0..=least),
            7 | 8 => self.random.u64(1..4),
            9 if self.random.u8(0..8) == 0 => u64::MAX,
            _ => 1,
        }
    }

    /// What a call has used, of all or of some of what it paid for.
    pub(super) fn used(&mut self, ticket: &Ticket) -> Used {
        let costs = ticket.costs();
        let is_paid = costs.calls > 0 && ticket.is_paid_in_calls() && ticket.least_count(None).is_some();
        let calls = (is_paid && self.random.bool()).then(|| self.used_of(costs.calls));
        let units = UNITS.iter().zip(costs.units).map(|(unit, cost)| {
            let cost = cost.unwrap_or(0);
            // While time stands still, stores may charge at different times what is paid afterwards.
            let may_be_settled = ticket.least_count(Some(unit)).is_some() && (cost > 0 || !self.sets_back);
            (may_be_settled && self.random.u8(0..4) > 0).then(|| self.used_of(cost))
        });
        let units: Vec<_> = units.collect();
        Used { calls, units: [units[0], units[1]] }
    }

    /// Less than the cost, or more.
    fn used_of(&mut self, cost: u64) -> u64 {
        match self.random.u8(0..4) {
            0 => cost.saturating_add(self.random.u64(0..2)),
            1 => cost.saturating_add(self.random.u64(1..1_000)),
            _ if cost > 0 => self.random.u64(..cost),
            // As much as anything can hold.
            2 if self.random.u8(0..8) == 0 => u64::MAX,
            _ => self.random.u64(0..10),
        }
    }

    pub(super) fn another_time(&mut self) -> u64 {
        let then_us = self.any_time();
        match self.running {
            // No lease is renewed meanwhile.
            Concurrency::Limited => then_us.min(self.start_us + us(LEASE) / 2 - 1),
            Concurrency::Unlimited => then_us,
        }
    }

    fn any_time(&mut self) -> u64 {
        let now_us = self.now_us;
        let (per_us, off) = (self.period_us(), self.random.u64(0..3));
        let ahead = |us: u64| now_us + us - 1 + off;
        match self.random.u8(0..if self.sets_back { 32 } else { 27 }) {
            0..6 => now_us,
            6..9 => now_us + 1,
            9..13 => ahead(per_us),
            13..17 => ahead(self.wait_us.max(1)),
            // The end of a slot or of a scheduled window.
            17..19 => ahead(per_us - now_us % per_us),
            19..26 => now_us + self.random.u64(..per_us),
            26 => now_us + self.random.u64(..5 * per_us),
            27 => now_us - 1,
            28 | 29 => now_us - self.random.u64(..per_us),
            30 => now_us - per_us - 1 + off,
            _ => self.start_us.min(now_us) - self.random.u64(..5 * per_us),
        }
    }

    /// A time that means something: to a rule, to one that overrides, or to the ban.
    fn period_us(&mut self) -> u64 {
        let policy = &self.versions[0].policy;
        if let Some(ban) = policy.ban().filter(|_| self.random.u8(0..4) == 0) {
            return us(if self.random.bool() { ban.within() } else { ban.duration() });
        }
        let rules = self.overrides.iter().flatten().chain(policy.rules());
        let rules: Vec<_> = rules.filter(|rule| rule.lease().is_none()).collect();
        match self.random.choice(rules).unwrap().algorithm() {
            Algorithm::Cron { schedule } => schedule.next_tick_us(self.now_us).unwrap() - self.now_us,
            Algorithm::TokenBucket(bucket) => us(bucket.per()),
            Algorithm::SlidingWindow { per } | Algorithm::SlidingCounter { per } | Algorithm::FixedWindow { per } => {
                us(*per)
            }
            other => unreachable!("{other:?}"),
        }
    }
}

fn us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}
