//! The calls that a rule other than a sliding window has counted, and whether one more fits.

use tallygate::{Algorithm, Rule, Schedule};
use tallygate_rules::{MAX_COUNTER_COUNT, MAX_EXACT};

use super::counted::first;

/// The calls that a rule has counted by itself, in the order of their admission.
#[derive(Debug, Default)]
pub(super) struct History(Vec<Hit>);

#[derive(Debug)]
struct Hit {
    at: u128,
    /// The weight that it counts; 0 after a full refund.
    weight: u128,
    /// The level of the bucket after it, in tokens times `per`.
    level: u128,
    /// The time since which the bucket was in use and not full.
    since: u128,
}

impl History {
    /// Returns whether a call of that cost fits at that time, if nothing happens before.
    pub(super) fn fits(&self, rule: &Rule, cost: u128, at: u128) -> bool {
        let (count, per) = (u128::from(rule.count()), per(rule));
        match rule.algorithm() {
            Algorithm::SlidingCounter { .. } => {
                let (slot, elapsed) = (at - at % per, at % per);
                let (current, before) = (self.weight(slot, slot + per), self.weight(slot - per, slot));
                current * per + before * (per - elapsed) + cost * per <= count * per
            }
            Algorithm::FixedWindow { .. } => {
                let (opened, weight) = self.window(per);
                cost + if at < opened + per { weight } else { 0 } <= count
            }
            Algorithm::Cron { schedule } => self.weight(last_tick(schedule, at), u128::MAX) + cost <= count,
            Algorithm::TokenBucket(_) => cost * per <= self.level(rule, at),
            _ => unreachable!("{rule:?}"),
        }
    }

    /// Returns the state of the rule: the greatest cost that fits, and the time until it is as if it had never counted.
    pub(super) fn standing(&self, rule: &Rule, now: u128) -> (u128, u128) {
        let limit = limit(rule);
        let remaining = first(0, limit + 1, |cost| cost > limit || !self.fits(rule, cost, now)).saturating_sub(1);
        let missing = (limit * per(rule)).saturating_sub(self.level(rule, now));
        let filled = if is_bucket(rule) { missing.div_ceil(u128::from(rule.count().max(1))) } else { u128::MAX };
        (remaining, self.over(rule).saturating_sub(now).min(filled))
    }

    pub(super) fn charge(&mut self, rule: &Rule, cost: u128, now: u128) {
        let level = self.level(rule, now).saturating_sub(cost * per(rule));
        let since = self.0.last().filter(|_| self.holds_something(rule, now)).map_or(now, |hit| hit.since);
        self.0.push(Hit { at: now, weight: cost, level, since });
    }

    /// Changes the cost of a call of that time from the first to the second, if the rule still counts it. Returns
    /// whether anything changed.
    pub(super) fn recount(&mut self, rule: &Rule, costs: (u128, u128), at: u128, now: u128) -> bool {
        let per = per(rule);
        let begun = self.begun(rule);
        // Calls in the future count as forgotten.
        if begun > now {
            return false;
        }
        match rule.algorithm() {
            Algorithm::SlidingCounter { .. } => {
                // A slot counts in itself and in the next one. Two are stored: the last one and the one before.
                let slot = at - at % per;
                let counts = (now - now % per) <= slot + per;
                let is_known = slot == begun || slot + per == begun;
                counts && is_known && self.change(slot, slot + per, costs, MAX_COUNTER_COUNT)
            }
            Algorithm::FixedWindow { .. } => {
                let window = begun..begun + per;
                window.contains(&at) && window.contains(&now) && self.change(begun, u128::MAX, costs, MAX_EXACT)
            }
            Algorithm::Cron { schedule } => {
                let tick = last_tick(schedule, now);
                (tick..=begun).contains(&at) && self.change(tick, u128::MAX, costs, MAX_EXACT)
            }
            _ if costs.1 > costs.0 => self.take_beyond(rule, costs.1 - costs.0, at, now),
            _ => {
                let full = limit(rule) * per;
                let holds_something = self.holds_something(rule, now);
                let Some(last) = self.0.last_mut() else { return false };
                let before = last.level;
                if holds_something && (last.since..=last.at).contains(&at) {
                    last.level = (last.level + (costs.0 - costs.1) * per).min(full);
                }
                last.level != before
            }
        }
    }

    /// Takes what was used beyond the cost from a bucket in use, until it is empty. Returns whether there was anything
    /// to take. This is a hit of now, and not of a later call.
    fn take_beyond(&mut self, rule: &Rule, beyond: u128, at: u128, now: u128) -> bool {
        let in_use = now < self.over(rule) && at <= self.begun(rule);
        let taken = (beyond * per(rule)).min(self.level(rule, now));
        if !in_use || taken == 0 {
            return false;
        }
        let level = self.level(rule, now) - taken;
        let since = self.0.last().filter(|_| self.holds_something(rule, now)).map_or(now, |hit| hit.since);
        self.0.push(Hit { at: now, weight: 0, level, since });
        true
    }

    /// Returns whether a bucket is in use and not full. Otherwise earlier calls do not matter.
    fn holds_something(&self, rule: &Rule, at: u128) -> bool {
        at < self.over(rule) && self.level(rule, at) < limit(rule) * per(rule)
    }

    /// Changes the weight of the calls of these times, and returns whether there was anything to change.
    fn change(&mut self, from: u128, until: u128, (cost, used): (u128, u128), most: u64) -> bool {
        if used <= cost {
            return self.take(from, until, cost - used);
        }
        let added = (used - cost).min(u128::from(most).saturating_sub(self.weight(from, until)));
        let place = self.0.partition_point(|hit| hit.at < until);
        match self.0[..place].last_mut().filter(|last| last.at >= from) {
            Some(last) => last.weight += added,
            None if added == 0 => {}
            // The call was forgotten because the clock was set back, but the slot was not.
            None => self.0.insert(place, Hit { at: from, weight: added, level: 0, since: 0 }),
        }
        added > 0
    }

    /// Takes up to that weight from the calls of these times, and returns whether they had any.
    fn take(&mut self, from: u128, until: u128, mut weight: u128) -> bool {
        let wanted = weight;
        for hit in self.0.iter_mut().filter(|hit| (from..until).contains(&hit.at)) {
            let taken = hit.weight.min(weight);
            hit.weight -= taken;
            weight -= taken;
        }
        weight < wanted
    }

    pub(super) fn forget_if_begun_after(&mut self, rule: &Rule, now: u128) {
        if self.begun(rule) > now {
            self.0.clear();
        }
    }

    fn weight(&self, from: u128, until: u128) -> u128 {
        self.0.iter().filter(|hit| (from..until).contains(&hit.at)).map(|hit| hit.weight).sum()
    }

    /// Returns when the rule is as if it had never counted, if nothing happens before.
    pub(super) fn over(&self, rule: &Rule) -> u128 {
        let (Some(last), weighty) = (self.0.last(), self.0.iter().rev().find(|hit| hit.weight > 0)) else { return 0 };
        let per = per(rule);
        match (rule.algorithm(), weighty) {
            // It is in use even if everything was refunded.
            (Algorithm::TokenBucket(bucket), _) => last.at + bucket.reset_after_for(rule.count()).as_micros(),
            (_, None) => 0,
            (Algorithm::SlidingCounter { .. }, Some(hit)) => hit.at - hit.at % per + 2 * per,
            (Algorithm::FixedWindow { .. }, _) if self.window(per).1 == 0 => 0,
            (Algorithm::FixedWindow { .. }, _) => self.window(per).0 + per,
            (Algorithm::Cron { schedule }, Some(hit)) => next_tick(schedule, hit.at),
            _ => unreachable!("{rule:?}"),
        }
    }

    /// Returns the time since which the rule counts its current weight; for a rule that counts each call separately,
    /// the time of the last call.
    pub(super) fn begun(&self, rule: &Rule) -> u128 {
        let last = self.0.last().map_or(0, |hit| hit.at);
        match rule.algorithm() {
            Algorithm::SlidingCounter { per } => last - last % per.as_micros(),
            Algorithm::FixedWindow { per } => self.window(per.as_micros()).0,
            _ => last,
        }
    }

    /// Returns when the last fixed window opened, and its weight. It is open even if everything was refunded.
    fn window(&self, per: u128) -> (u128, u128) {
        self.0.iter().fold((0, 0), |(opened, weight), hit| {
            if hit.at < opened + per { (opened, weight + hit.weight) } else { (hit.at, hit.weight) }
        })
    }

    /// Returns the level of the bucket, in tokens times `per`.
    fn level(&self, rule: &Rule, at: u128) -> u128 {
        let Algorithm::TokenBucket(bucket) = rule.algorithm() else { return 0 };
        match self.0.last() {
            Some(hit) if at < self.over(rule) => {
                let flown = (at - hit.at) * u128::from(rule.count());
                (hit.level + flown).min(limit(rule) * per(rule))
            }
            _ => u128::from(bucket.initial_for(rule.count())) * per(rule),
        }
    }
}

pub(super) fn per(rule: &Rule) -> u128 {
    rule.per().map_or(0, |per| per.as_micros())
}

fn limit(rule: &Rule) -> u128 {
    rule.capacity().unwrap_or(rule.count()).into()
}

pub(super) fn is_sliding(rule: &Rule) -> bool {
    matches!(rule.algorithm(), Algorithm::SlidingWindow { .. })
}

fn is_bucket(rule: &Rule) -> bool {
    matches!(rule.algorithm(), Algorithm::TokenBucket(_))
}

fn last_tick(schedule: &Schedule, at: u128) -> u128 {
    schedule.last_tick_us(u64::try_from(at).unwrap()).unwrap().into()
}

fn next_tick(schedule: &Schedule, at: u128) -> u128 {
    schedule.next_tick_us(u64::try_from(at).unwrap()).unwrap().into()
}
