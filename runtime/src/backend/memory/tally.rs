//! The stored state of one subject: the log of its sliding windows, and a cell for every other rule.

use std::collections::VecDeque;

use super::ballot::Ballot;
use super::cell::Cell;
use super::penalty::Penalty;
use super::wait::Wait;
use crate::backend::Standing;
use crate::policy::group::{Group, Window};

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
    pub(super) fn new(group: &Group) -> Self {
        Self { cells: vec![Cell::default(); group.celled.len()].into(), ..Self::default() }
    }

    /// Whether nothing in this tally counts any more.
    pub(super) fn is_over(&self, now_us: u64) -> bool {
        self.over_us <= now_us
    }

    /// Lets it stay for now, though nothing in it may count.
    pub(super) fn keep(&mut self, now_us: u64) {
        self.over_us = self.over_us.max(now_us + 1);
    }

    /// The clock was set back: what lies in the future is forgotten, lest it block longer than its window.
    #[inline]
    pub(super) fn forget_future(&mut self, now_us: u64) {
        while self.hits_us.back().is_some_and(|&hit| hit > now_us) {
            self.hits_us.pop_back();
        }
        for cell in self.cells.iter_mut().filter(|cell| cell.is_after(now_us)) {
            *cell = Cell::default();
        }
    }

    /// Asks every rule, unless the subject is banned; the first of them has the number `first` in its request.
    #[inline]
    pub(super) fn ask(&self, group: &Group, first: usize, cost: u64, now_us: u64, ballot: &mut Ballot) {
        if let Some(wait) = self.penalty.as_ref().and_then(|penalty| penalty.wait(now_us)) {
            return ballot.hear_ban(wait);
        }
        for window in &group.windows {
            let (index, wait) = (first + window.place, self.window_wait(window, cost, now_us));
            if window.is_duplicate { ballot.hear_duplicate(index, wait) } else { ballot.hear(index, wait) }
        }
        let mut cells = self.cells.iter();
        for (place, rule) in group.rules_with_cells() {
            let Some(cell) = cells.next() else {
                // What is unknown is closed.
                ballot.hear(first + place, Wait::NEVER);
                continue;
            };
            let cell = cell.at(rule, now_us);
            if let Some(lapse) = cell.lapse(rule, cost, now_us) {
                ballot.hear_lapse(lapse);
            }
            ballot.hear(first + place, cell.wait(rule, cost, now_us));
        }
    }

    /// Counts the call with every rule.
    #[inline]
    pub(super) fn charge(&mut self, group: &Group, cost: u64, now_us: u64) {
        let mut over_us = self.penalty.as_ref().map_or(now_us, |penalty| penalty.over_us(group).max(now_us));
        for (cell, (_, rule)) in self.cells.iter_mut().zip(group.rules_with_cells()) {
            *cell = cell.at(rule, now_us).charged(rule, cost, now_us);
            over_us = over_us.max(cell.over_us(rule));
        }
        if group.largest > 0 {
            over_us = over_us.max(now_us + group.reach_us);
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
        let mut changed = false;
        for (cell, (_, rule)) in self.cells.iter_mut().zip(group.rules_with_cells()) {
            let refunded = cell.refunded(rule, cost, admitted_us, now_us);
            changed |= refunded != *cell;
            *cell = refunded;
        }
        let first = self.hits_us.partition_point(|&hit| hit < admitted_us);
        let hits = self.hits_us.partition_point(|&hit| hit <= admitted_us) - first;
        let units = hits.min(usize::try_from(cost.min(group.largest)).unwrap_or(usize::MAX));
        self.hits_us.drain(first..first + units);
        changed || units > 0
    }

    /// Tells where every rule stands.
    pub(super) fn report(&self, group: &Group, now_us: u64, standings: &mut Vec<Standing>) {
        let (mut windows, mut cells) = (group.windows.iter().peekable(), self.cells.iter());
        standings.extend(group.rules.iter().enumerate().map(|(place, rule)| {
            match windows.next_if(|window| window.place == place) {
                Some(window) => self.window_standing(window, now_us),
                None => cells.next().copied().unwrap_or_default().at(rule, now_us).standing(rule, now_us),
            }
        }));
    }

    #[inline]
    fn window_wait(&self, window: &Window, cost: u64, now_us: u64) -> Wait {
        let weight = if window.is_duplicate { 1 } else { cost };
        let Some(room) = window.count.checked_sub(weight) else { return Wait::NEVER };
        // The call fits once the newest hit that leaves too little room for it is out of the window.
        let hit_us = usize::try_from(room)
            .ok()
            .and_then(|room| self.hits_us.len().checked_sub(room + 1))
            .and_then(|index| self.hits_us.get(index));
        hit_us.map_or(Wait::NONE, |hit_us| Wait::until(hit_us + window.per_us, now_us))
    }

    fn window_standing(&self, window: &Window, now_us: u64) -> Standing {
        let Window { count, per_us, .. } = *window;
        let dead = self.hits_us.partition_point(|hit| hit + per_us <= now_us);
        let used = (self.hits_us.len() - dead) as u64;
        let last_us = self.hits_us.back().filter(|_| used > 0);
        Standing::of(count.saturating_sub(used), last_us.map_or(0, |last| last + per_us - now_us))
    }

    #[inline]
    fn log(&mut self, reach_us: u64, units: u64, now_us: u64) {
        // Found by time, not by count: another version of the policy may allow more.
        while self.hits_us.front().is_some_and(|&hit| hit + reach_us <= now_us) {
            self.hits_us.pop_front();
        }
        for _ in 0..units {
            self.hits_us.push_back(now_us);
        }
    }
}
