//! The stored state of one subject: the log of its sliding windows, and a cell for every other rule.

use std::collections::VecDeque;

use super::ban_state::BanState;
use super::cell::Cell;
use super::outcome_builder::OutcomeBuilder;
use super::wait::Wait;
use crate::decision::Quota;
use crate::policy::{RuleGroup, Window};

/// The stored state of one subject.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The time of each unit of weight that the sliding windows admitted, oldest first.
    hits_us: VecDeque<u64>,
    /// The state of every rule that is no sliding window, in the order of the rules.
    cells: Box<[Cell]>,
    /// The denials and the ban; nothing unless denials lead to a ban.
    ban_state: Option<Box<BanState>>,
    /// When nothing in here counts any more.
    expires_us: u64,
}

impl Tally {
    pub(super) fn new(group: &RuleGroup) -> Self {
        Self { cells: vec![Cell::default(); group.celled.len()].into(), ..Self::default() }
    }

    /// Whether nothing in this tally counts any more.
    pub(super) fn is_expired(&self, now_us: u64) -> bool {
        self.expires_us <= now_us
    }

    /// Keeps it for now, although nothing in it may count.
    pub(super) fn keep(&mut self, now_us: u64) {
        self.expires_us = self.expires_us.max(now_us + 1);
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

    /// Asks every rule, and whether the subject is banned. The first rule has the place `first` in its request.
    #[inline]
    pub(super) fn ask(&self, group: &RuleGroup, first: usize, cost: u64, now_us: u64, builder: &mut OutcomeBuilder) {
        if let Some(wait) = self.ban_state.as_ref().and_then(|ban_state| ban_state.wait(now_us)) {
            builder.add_ban(wait);
        }
        for window in &group.windows {
            let place = first + window.place;
            let wait = self.window_wait(window, cost, now_us);
            if window.is_duplicate { builder.add_duplicate_wait(place, wait) } else { builder.add_wait(place, wait) }
        }
        let mut cells = self.cells.iter();
        for (place, rule) in group.rules_with_cells() {
            let Some(cell) = cells.next() else {
                // What is unknown is closed.
                builder.add_wait(first + place, Wait::NEVER);
                continue;
            };
            let cell = cell.at(rule, now_us);
            if let Some(lapse) = cell.lapse(rule, cost, now_us) {
                builder.add_lapse(lapse);
            }
            builder.add_wait(first + place, cell.wait(rule, cost, now_us));
        }
    }

    /// Counts the call with every rule.
    #[inline]
    pub(super) fn charge(&mut self, group: &RuleGroup, cost: u64, now_us: u64) {
        let mut expires_us =
            self.ban_state.as_ref().map_or(now_us, |ban_state| ban_state.expires_us(group).max(now_us));
        for (cell, (_, rule)) in self.cells.iter_mut().zip(group.rules_with_cells()) {
            *cell = cell.at(rule, now_us).charged(rule, cost, now_us);
            expires_us = expires_us.max(cell.expires_us(rule));
        }
        if group.largest > 0 {
            expires_us = expires_us.max(now_us + group.reach_us);
            // A call that costs more than every window counts is here because they all weigh calls: one unit is
            // enough for them.
            self.log(group.reach_us, cost.min(group.largest), now_us);
        }
        self.expires_us = expires_us;
    }

    /// Counts a denial towards a ban.
    pub(super) fn deny(&mut self, group: &RuleGroup, now_us: u64) {
        if let Some(ban) = &group.ban {
            let ban_state = self.ban_state.get_or_insert_default();
            ban_state.deny(ban, now_us);
            self.expires_us = self.expires_us.max(ban_state.expires_us(group));
        }
    }

    /// Bans the subject until then, or ends its ban; its denials are counted anew.
    pub(super) fn ban(&mut self, group: &RuleGroup, duration_us: u64, now_us: u64) {
        let ban_state = BanState::ban(duration_us, now_us);
        self.expires_us = self.expires_us.max(ban_state.expires_us(group));
        self.ban_state = Some(Box::new(ban_state));
    }

    /// Removes the hits of a call that was admitted then from every rule in which they still count; returns whether there
    /// was one.
    pub(super) fn refund(&mut self, group: &RuleGroup, cost: u64, admitted_us: u64, now_us: u64) -> bool {
        let mut changed = false;
        for (cell, (_, rule)) in self.cells.iter_mut().zip(group.rules_with_cells()) {
            let refunded = cell.refunded(rule, cost, admitted_us, now_us);
            changed |= refunded != *cell;
            *cell = refunded;
        }
        if admitted_us <= now_us && now_us < admitted_us + group.reach_us {
            let first = self.hits_us.partition_point(|&hit| hit < admitted_us);
            let hits = self.hits_us.partition_point(|&hit| hit <= admitted_us) - first;
            let units = hits.min(usize::try_from(cost.min(group.largest)).unwrap_or(usize::MAX));
            self.hits_us.drain(first..first + units);
            changed |= units > 0;
        }
        changed
    }

    /// Adds what is left of every rule.
    pub(super) fn report(&self, group: &RuleGroup, now_us: u64, quotas: &mut Vec<Quota>) {
        let mut windows = group.windows.iter().peekable();
        let mut cells = self.cells.iter();
        quotas.extend(group.rules.iter().enumerate().map(|(place, rule)| {
            match windows.next_if(|window| window.place == place) {
                Some(window) => self.window_quota(window, now_us),
                None => cells.next().copied().unwrap_or_default().at(rule, now_us).quota(rule, now_us),
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

    fn window_quota(&self, window: &Window, now_us: u64) -> Quota {
        let Window { count, per_us, .. } = *window;
        let dead = self.hits_us.partition_point(|hit| hit + per_us <= now_us);
        let used = (self.hits_us.len() - dead) as u64;
        let last_us = self.hits_us.back().filter(|_| used > 0);
        Quota::new(count.saturating_sub(used), last_us.map_or(0, |last| last + per_us - now_us))
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
