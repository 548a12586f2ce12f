//! The stored state of one subject: the log of its sliding windows, and a cell for every other rule.

use std::collections::VecDeque;

use tallygate_rules::{Algorithm, Role, Rule};

use super::ballot::Ballot;
use super::cell::Cell;
use super::penalty::Penalty;
use super::wait::Wait;
use crate::backend::{Standing, as_us};
use crate::policy::group::Group;

/// What one subject has done.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The time of each unit of weight that the sliding windows admitted, oldest first.
    hits_us: VecDeque<u64>,
    /// The state of every rule that is no sliding window, in the order of the rules.
    cells: Box<[Cell]>,
    /// What there is of denials and of a ban; nothing unless denials lead to one.
    penalty: Option<Box<Penalty>>,
    /// When nothing in here counts any more.
    over_us: u64,
}

impl Tally {
    pub(super) fn new(group: Option<&Group>) -> Self {
        let cells = group.map_or(0, |group| group.cells);
        Self { cells: vec![Cell::default(); cells].into(), ..Self::default() }
    }

    /// Whether nothing in this tally counts any more.
    pub(super) fn is_over(&self, now_us: u64) -> bool {
        self.over_us <= now_us
    }

    /// The clock was set back: what lies in the future is forgotten, lest it block longer than its window.
    pub(super) fn forget_future(&mut self, now_us: u64) {
        while self.hits_us.back().is_some_and(|&hit| hit > now_us) {
            self.hits_us.pop_back();
        }
        for cell in self.cells.iter_mut().filter(|cell| cell.is_after(now_us)) {
            *cell = Cell::default();
        }
    }

    /// Asks every rule, unless the subject is banned; the first of them has the number `first` in its request.
    pub(super) fn ask(&self, group: &Group, first: usize, cost: u64, now_us: u64, ballot: &mut Ballot) {
        if let Some(wait) = self.penalty.as_ref().and_then(|penalty| penalty.wait(now_us)) {
            return ballot.hear_ban(wait);
        }
        let mut cells = self.cells.iter();
        for (rule, index) in group.rules.iter().zip(first..) {
            let wait = match rule.algorithm() {
                Algorithm::SlidingWindow { per } => self.window_wait(rule, as_us(*per), cost, now_us),
                _ => cells.next().map_or(Wait::NEVER, |cell| {
                    let cell = cell.at(rule, now_us);
                    if let Some(lapse) = cell.lapse(rule, cost, now_us) {
                        ballot.hear_lapse(lapse);
                    }
                    cell.wait(rule, cost, now_us)
                }),
            };
            ballot.hear(rule, index, wait);
        }
    }

    /// Counts the call with every rule.
    pub(super) fn charge(&mut self, group: &Group, cost: u64, now_us: u64) {
        let mut over_us = self.penalty.as_ref().map_or(now_us, |penalty| penalty.over_us(group).max(now_us));
        let mut slides = false;
        let mut cells = self.cells.iter_mut();
        for rule in &group.rules {
            if let Algorithm::SlidingWindow { per } = rule.algorithm() {
                over_us = over_us.max(now_us + as_us(*per));
                slides = true;
            } else if let Some(cell) = cells.next() {
                *cell = cell.at(rule, now_us).charged(rule, cost, now_us);
                over_us = over_us.max(cell.over_us(rule));
            }
        }
        if slides {
            // A call that costs more than every window counts is here because they all weigh calls: one unit tells them
            // enough.
            self.log(group.reach_us, cost.min(group.largest), now_us);
        }
        self.over_us = over_us;
    }

    /// Counts a denial towards a ban.
    pub(super) fn deny(&mut self, group: &Group, now_us: u64) {
        if let Some(ban) = &group.ban {
            let penalty = self.penalty.get_or_insert_default();
            penalty.deny(ban, now_us);
            self.over_us = self.over_us.max(penalty.over_us(group));
        }
    }

    /// Bans the subject until then, or ends its ban; its denials are counted anew.
    pub(super) fn ban(&mut self, group: &Group, duration_us: u64, now_us: u64) {
        let penalty = Penalty::ban(duration_us, now_us);
        self.over_us = self.over_us.max(penalty.over_us(group));
        self.penalty = Some(Box::new(penalty));
    }

    /// Takes back what a call was counted as that was admitted then; tells whether there was anything.
    pub(super) fn refund(&mut self, group: &Group, cost: u64, admitted_us: u64, now_us: u64) -> bool {
        let mut cells = self.cells.iter_mut();
        let mut changed = false;
        for rule in &group.rules {
            if matches!(rule.algorithm(), Algorithm::SlidingWindow { .. }) {
                continue;
            }
            if let Some(cell) = cells.next() {
                let refunded = cell.refunded(rule, cost, admitted_us, now_us);
                changed |= refunded != *cell;
                *cell = refunded;
            }
        }
        let first = self.hits_us.partition_point(|&hit| hit < admitted_us);
        let hits = self.hits_us.partition_point(|&hit| hit <= admitted_us) - first;
        let units = hits.min(usize::try_from(cost.min(group.largest)).unwrap_or(usize::MAX));
        self.hits_us.drain(first..first + units);
        changed || units > 0
    }

    /// Tells where every rule stands.
    pub(super) fn report(&self, rules: &[Rule], now_us: u64, standings: &mut Vec<Standing>) {
        let mut cells = self.cells.iter();
        standings.extend(rules.iter().map(|rule| match rule.algorithm() {
            Algorithm::SlidingWindow { per } => self.window_standing(rule, as_us(*per), now_us),
            _ => cells.next().copied().unwrap_or_default().at(rule, now_us).standing(rule, now_us),
        }));
    }

    fn window_wait(&self, rule: &Rule, window_us: u64, cost: u64, now_us: u64) -> Wait {
        let weight = if rule.role() == Role::Duplicate { 1 } else { cost };
        let Some(room) = rule.count().checked_sub(weight) else { return Wait::NEVER };
        // The call fits once the newest hit that leaves too little room for it is out of the window.
        let hit_us = usize::try_from(room)
            .ok()
            .and_then(|room| self.hits_us.len().checked_sub(room + 1))
            .and_then(|index| self.hits_us.get(index));
        hit_us.map_or(Wait::NONE, |hit_us| Wait::until(hit_us + window_us, now_us))
    }

    fn window_standing(&self, rule: &Rule, window_us: u64, now_us: u64) -> Standing {
        let dead = self.hits_us.partition_point(|hit| hit + window_us <= now_us);
        let used = (self.hits_us.len() - dead) as u64;
        let last_us = self.hits_us.back().filter(|_| used > 0);
        Standing::of(rule.count().saturating_sub(used), last_us.map_or(0, |last| last + window_us - now_us))
    }

    fn log(&mut self, reach_us: u64, units: u64, now_us: u64) {
        // Found by time, not by count: another version of the policy may allow more.
        while self.hits_us.front().is_some_and(|&hit| hit + reach_us <= now_us) {
            self.hits_us.pop_front();
        }
        self.hits_us.extend((0..units).map(|_| now_us));
    }
}
