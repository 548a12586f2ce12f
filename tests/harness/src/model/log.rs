//! The calls that the sliding windows of one subject have counted together.

use std::collections::VecDeque;

use tallygate::Rule;
use tallygate_rules::{MAX_LOG_ENTRIES, MAX_REFUND_DISTANCE};

use super::history::{is_sliding, per};
use super::{Drops, is_duplicate};

/// A log weighs at most this much.
const MOST_WEIGHT: u128 = u32::MAX as u128;

/// The calls that the sliding windows have counted, in the order of their admission.
#[derive(Debug, Default)]
pub(super) struct Log(VecDeque<Entry>);

/// A call, or several that share the time of the last of them.
#[derive(Debug)]
struct Entry {
    at: u128,
    weight: u128,
    /// The weight of this entry and of all earlier ones, removed ones included.
    total: u128,
}

/// The properties of the rules that matter for their common log.
pub(super) struct Shape {
    /// How long the log counts a call.
    reach: u128,
    /// The greatest weight of one call; 0 without sliding windows.
    largest: u128,
}

impl Shape {
    pub(super) fn of(rules: &[Rule]) -> Self {
        let sliding = || rules.iter().filter(|rule| is_sliding(rule));
        Self {
            reach: sliding().map(per).max().unwrap_or_default(),
            largest: sliding().map(|rule| rule.count().max(1).into()).max().unwrap_or_default(),
        }
    }

    /// Returns whether calls of these times may share an entry of a dense log.
    fn are_close(&self, one: u128, other: u128) -> bool {
        let grain = self.reach.div_ceil(MAX_LOG_ENTRIES as u128).max(1);
        one / grain == other / grain
    }
}

impl Log {
    /// Returns whether a call of that cost fits at that time, if nothing happens before.
    pub(super) fn fits(&self, rule: &Rule, cost: u128, at: u128) -> bool {
        if is_duplicate(rule) {
            return rule.count() > 0 && self.over(rule) <= at;
        }
        self.weight_after(at - per(rule)) + cost <= rule.count().into()
    }

    /// Returns when the rule is as if it had never counted, if nothing happens before.
    pub(super) fn over(&self, rule: &Rule) -> u128 {
        self.0.back().map_or(0, |last| last.at + per(rule))
    }

    /// Returns the state of the rule: the greatest cost that fits, and the time until it is as if it had never counted.
    pub(super) fn standing(&self, rule: &Rule, now: u128) -> (u128, u128) {
        let weight = self.weight_after(now - per(rule));
        let reset = if weight > 0 { self.over(rule) - now } else { 0 };
        (u128::from(rule.count()).saturating_sub(weight), reset)
    }

    pub(super) fn charge(&mut self, shape: &Shape, cost: u128, now: u128) {
        let weight = cost.min(shape.largest);
        let total = self.total() + weight;
        let is_dense = self.is_dense(shape, now);
        match self.0.back_mut() {
            Some(last) if last.weight == 0 || last.at == now || is_dense && shape.are_close(last.at, now) => {
                // The older calls of the entry count from now on, so that nothing is admitted too early.
                *last = Entry { at: now, weight: last.weight + weight, total };
            }
            _ if weight > 0 => self.0.push_back(Entry { at: now, weight, total }),
            _ => {}
        }
    }

    /// Counts what was used beyond all limits, up to the greatest sum that a log can hold.
    pub(super) fn charge_late(&mut self, shape: &Shape, used: u128, now: u128) {
        let room = MOST_WEIGHT.saturating_sub(self.weight_after(now - shape.reach));
        if room > 0 {
            self.charge(shape, used.min(room), now);
        }
    }

    /// Returns whether the log is dense: so many entries count that calls share them.
    fn is_dense(&self, shape: &Shape, now: u128) -> bool {
        let from_the_end = self.0.len().checked_sub(MAX_LOG_ENTRIES).map(|index| &self.0[index]);
        from_the_end.is_some_and(|entry| entry.at + shape.reach > now)
    }

    /// Changes the cost of a call of that time if it still counts, and returns whether anything changed.
    pub(super) fn recount(&mut self, shape: &Shape, costs: (u128, u128), at: u128, now: u128) -> bool {
        let index = self.0.partition_point(|entry| entry.at < at);
        let Some(entry) = self.0.get(index) else { return false };
        let is_shared = shape.largest > MAX_LOG_ENTRIES as u128 && shape.are_close(entry.at, at);
        let counts = at <= now && now < at + shape.reach && (entry.at == at || is_shared);
        let behind = self.0.len() - 1 - index;
        let (cost, used) = (costs.0.min(shape.largest), costs.1.min(shape.largest));
        if counts && used > cost {
            // A call that is too far behind counts with a later one.
            self.add(index + behind.saturating_sub(MAX_REFUND_DISTANCE), used - cost);
            return true;
        }
        let weight = cost.saturating_sub(used).min(entry.weight);
        if !counts || behind > MAX_REFUND_DISTANCE || weight == 0 {
            return false;
        }
        for entry in self.0.range_mut(index..) {
            entry.total -= weight;
        }
        self.0[index].weight -= weight;
        if self.0[index].weight == 0 {
            // So the last entry always has the time of a call that counts.
            self.0[index].at = index.checked_sub(1).map_or(0, |before| self.0[before].at);
        }
        true
    }

    fn add(&mut self, index: usize, weight: u128) {
        self.0[index].weight += weight;
        for entry in self.0.range_mut(index..) {
            entry.total += weight;
        }
    }

    /// Returns the time of the last entry.
    pub(super) fn latest(&self) -> u128 {
        self.0.back().map_or(0, |entry| entry.at)
    }

    pub(super) fn forget_future(&mut self, now: u128) {
        while self.0.back().is_some_and(|entry| entry.at > now) {
            self.0.pop_back();
        }
    }

    /// Removes entries that no longer count, before a call of that weight is charged.
    pub(super) fn forget_past(&mut self, shape: &Shape, weight: u128, drops: Drops, now: u128) {
        let ended = self.0.partition_point(|entry| entry.at + shape.reach <= now);
        let has_room = self.weight_from(0) + weight.min(shape.largest) <= MOST_WEIGHT;
        if drops == Drops::AtOnce || ended == self.0.len() || !has_room {
            self.0.drain(..ended);
        }
    }

    /// Returns the weight of the entries after that time.
    fn weight_after(&self, at: u128) -> u128 {
        self.weight_from(self.0.partition_point(|entry| entry.at <= at))
    }

    /// Returns the weight of the entries from that one on.
    fn weight_from(&self, index: usize) -> u128 {
        self.0.get(index).map_or(0, |first| self.total() - first.total + first.weight)
    }

    fn total(&self) -> u128 {
        self.0.back().map_or(0, |last| last.total)
    }
}
