//! What a tally holds beside its log: cells, a ban, and running calls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tallygate_rules::Ban;

use super::leases::Leases;
use crate::algorithm::{Cell, Celled, CostChange, DecidedByCell, Quota};
use crate::clock::is_set_back;
use crate::decision::{Remainder, Wait};
use crate::micros;
use crate::policy::RuleGroup;
use crate::store::outcome_builder::OutcomeBuilder;

/// The cells of rules, the ban and the concurrent calls of one subject.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// A cell for each rule that is no sliding window, in the order of the rules.
    cells: Box<[Cell]>,
    /// The denials and the ban. Unused unless denials lead to a ban.
    ban_state: BanState,
    /// Empty unless the group has a concurrency limit.
    pub(super) leases: Leases,
}

impl Counters {
    pub(super) fn new(cells: usize) -> Self {
        Self { cells: vec![Cell::default(); cells].into(), ..Self::default() }
    }

    pub(super) fn cells(&self) -> impl Iterator<Item = Cell> {
        self.cells.iter().copied()
    }

    pub(super) fn is_banned(&self, now_us: u64) -> bool {
        self.ban_state.wait(now_us).is_some()
    }

    /// The latest time in all cells.
    #[inline(never)]
    pub(super) fn latest_us(&self) -> u64 {
        self.cells.iter().map(|cell| cell.latest_us()).max().unwrap_or_default()
    }

    pub(super) fn forget_future(&mut self, now_us: u64) {
        for cell in self.cells.iter_mut().filter(|cell| cell.is_after(now_us)) {
            *cell = Cell::default();
        }
    }

    /// Decides a call, and counts it. `only` is the only rule, and has the only cell.
    #[inline]
    pub(super) fn decide(&mut self, only: &dyn Celled, cost: u64, now_us: u64) -> DecidedByCell {
        match self.cells.first_mut() {
            Some(cell) => only.decide(cell, cost, now_us),
            // A rule without its cell would be a mistake of this library. It admits nothing.
            None => DecidedByCell { wait: Wait::NEVER, plain: Wait::NEVER, expires_us: 0 },
        }
    }

    /// Counts a call with every rule if all of them admit it; `None` if one does not.
    pub(super) fn admit(&mut self, group: &RuleGroup, cost: u64, now_us: u64) -> Option<DecidedByCell> {
        let mut all =
            DecidedByCell { wait: Wait::NONE, plain: Wait::NONE, expires_us: self.ban_state.expires_us(group) };
        let (Some((last, others)), Some(((_, last_rule), rules))) =
            (self.cells.split_last_mut(), group.celled.split_last())
        else {
            return group.celled.is_empty().then_some(all);
        };
        let rules = || rules.iter().map(|(_, rule)| rule);
        let has_room = |(cell, rule): (&Cell, &Arc<dyn Celled>)| rule.ask(*cell, cost, now_us).0.is_none();
        if others.len() != group.celled.len() - 1 || !others.iter().zip(rules()).all(has_room) {
            return None;
        }
        // The last one decides and counts at once, because nothing can deny the call any more.
        let decided = last_rule.decide(last, cost, now_us);
        if !decided.wait.is_none() {
            return None;
        }
        all.include(decided.plain, decided.expires_us);
        for (cell, rule) in others.iter_mut().zip(rules()) {
            let plain = rule.charge(cell, cost, now_us);
            all.include(plain, rule.expires_us(*cell));
        }
        Some(all)
    }

    /// Asks every rule, and whether the subject is banned. The first rule of the group has the place `first`.
    pub(super) fn ask(&self, group: &RuleGroup, first: usize, cost: u64, now_us: u64, builder: &mut OutcomeBuilder) {
        if let Some(wait) = self.ban_state.wait(now_us) {
            builder.add_ban(wait);
        }
        if let Some((rule, lease_us)) = group.concurrency() {
            builder.add_bound(first, self.leases.wait(rule.count(), lease_us, now_us));
        }
        let mut cells = self.cells.iter();
        for (place, rule) in &group.celled {
            let Some(cell) = cells.next() else {
                // A rule without its cell would be a mistake of this library. It admits nothing.
                builder.add_wait(first + place, Wait::NEVER);
                continue;
            };
            let (wait, lapse) = rule.ask(*cell, cost, now_us);
            if let Some(lapse) = lapse {
                builder.add_lapse(lapse);
            }
            builder.add_wait(first + place, wait);
        }
    }

    /// Counts the call with every rule; returns how long a call of cost 1 would have to wait now.
    pub(super) fn charge(&mut self, group: &RuleGroup, cost: u64, now_us: u64) -> Wait {
        let mut longest = Wait::NONE;
        for (cell, (_, rule)) in self.cells.iter_mut().zip(&group.celled) {
            longest = longest.max(rule.charge(cell, cost, now_us));
        }
        longest
    }

    pub(super) fn deny(&mut self, group: &RuleGroup, now_us: u64) {
        if let Some(ban) = &group.ban {
            self.ban_state.deny(ban, now_us);
        }
    }

    /// Bans the subject for this time, or ends its ban if this is 0. Earlier denials no longer count.
    pub(super) fn ban(&mut self, duration_us: u64, now_us: u64) {
        self.ban_state = BanState::ban(duration_us, now_us);
    }

    /// See [`Decider::recount`](crate::store::Decider::recount).
    pub(super) fn refund(&mut self, group: &RuleGroup, costs: CostChange, admitted_us: u64, now_us: u64) -> bool {
        let mut changed = false;
        for (cell, (_, rule)) in self.cells.iter_mut().zip(&group.celled) {
            // A cell that is later than now counts as forgotten.
            if cell.is_after(now_us) {
                continue;
            }
            let refunded = rule.refunded(*cell, costs, admitted_us, now_us);
            changed |= refunded != *cell;
            *cell = refunded;
        }
        changed
    }

    /// Leaves at most so much of a rule, if it still counts a call that was admitted at `admitted_us`, and counts what is added for at
    /// most twice the time until the reset.
    pub(super) fn leave(&mut self, group: &RuleGroup, remainder: Remainder, admitted_us: u64, now_us: u64) -> bool {
        let Remainder { place, most, reset_us, .. } = remainder;
        let mut cells = self.cells.iter_mut().zip(&group.celled);
        let Some((cell, (_, rule))) = cells.find(|(_, (at, _))| *at == place) else { return false };
        let left = rule.left(*cell, most, admitted_us, now_us);
        let longest = Duration::from_micros(2 * reset_us);
        let changed = left != *cell && quota(left, &**rule, now_us).reset <= longest;
        if changed {
            *cell = left;
        }
        changed
    }

    /// When nothing counts any more.
    pub(super) fn expires_us(&self, group: &RuleGroup) -> u64 {
        let cells = self.cells.iter().zip(&group.celled).map(|(cell, (_, rule))| rule.expires_us(*cell));
        cells.max().unwrap_or_default().max(self.ban_state.expires_us(group))
    }
}

/// What remains of a rule, by its stored cell.
// A function of its own, so that a report on sliding windows does not contain its code.
#[inline(never)]
pub(super) fn quota(cell: Cell, rule: &dyn Celled, now_us: u64) -> Quota {
    let present = rule.at(cell, now_us);
    rule.quota(present, now_us).with_wait(rule.wait(present, 1, now_us))
}

/// The latest denials of a subject, and its ban.
#[derive(Debug, Default)]
#[allow(clippy::struct_field_names, reason = "the unit is part of the name")]
pub(super) struct BanState {
    /// The times of the latest denials, oldest first: at most as many as lead to a ban.
    denials_us: VecDeque<u64>,
    began_us: u64,
    ends_us: u64,
}

impl BanState {
    /// Begins a ban of this duration; 0 means no ban.
    pub(super) fn ban(duration_us: u64, now_us: u64) -> Self {
        match duration_us {
            0 => Self::default(),
            _ => Self { began_us: now_us, ends_us: now_us + duration_us, ..Self::default() },
        }
    }

    /// Returns how long the ban lasts. A ban from before the clock was set back does not count.
    pub(super) fn wait(&self, now_us: u64) -> Option<Wait> {
        (!is_set_back(self.began_us, now_us) && now_us < self.ends_us).then(|| Wait::until(self.ends_us, now_us))
    }

    pub(super) fn deny(&mut self, ban: &Ban, now_us: u64) {
        let within_us = micros::from_duration(ban.within());
        self.denials_us.push_back(now_us);
        while self.denials_us.len() as u64 > ban.denials() {
            self.denials_us.pop_front();
        }
        let oldest = self.denials_us.front().filter(|_| self.denials_us.len() as u64 == ban.denials());
        if oldest.is_some_and(|&oldest| oldest + within_us > now_us && !is_set_back(oldest, now_us)) {
            *self = Self::ban(micros::from_duration(ban.duration()), now_us);
        }
    }

    /// When nothing counts any more.
    pub(super) fn expires_us(&self, group: &RuleGroup) -> u64 {
        let within_us = group.ban.map_or(0, |ban| micros::from_duration(ban.within()));
        self.denials_us.back().map_or(0, |last| last + within_us).max(self.ends_us)
    }
}
