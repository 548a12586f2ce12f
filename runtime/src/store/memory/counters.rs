//! What a tally holds beside its log: cells, a ban, and running calls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use tallygate_rules::Ban;

use super::leases::Leases;
use super::trace::{RemnantTable, Remnants, TraceKey};
use crate::algorithm::{Cell, Celled, CostChange, DecidedByCell, Quota, Remnant};
use crate::clock::{self, is_set_back};
use crate::decision::{Remainder, Wait};
use crate::micros;
use crate::policy::{RuleGroup, TracedRules};
use crate::store::outcome_builder::OutcomeBuilder;

/// The places of what is left of denials and of a ban.
const DENIALS: usize = usize::MAX - 1;
const BAN: usize = usize::MAX;

/// How many parts are left of denials: each counts until its last one would.
const PARTS: usize = 4;

/// The places of what is left of a cell. That of a log is 0.
pub(super) fn places_of_cell(index: usize) -> [usize; 2] {
    [1 + 2 * index, 2 + 2 * index]
}

/// The cells of rules, the ban and the concurrent calls of one subject.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// A cell for each rule that is no sliding window, in the order of the rules.
    cells: Box<[Cell]>,
    /// The denials and the ban. In a box, because most subjects have none.
    ban_state: Option<Box<BanState>>,
    /// Empty unless the group has a concurrency limit.
    pub(super) leases: Leases,
    /// The rules of the last call that was counted.
    traced: Option<Arc<TracedRules>>,
    /// In a box of its own, because most subjects share nothing.
    restored: Option<Box<RestoredCells>>,
}

/// Each cell when the subject returned, and the same cell without what other subjects share.
#[derive(Debug)]
struct RestoredCells(Vec<[Cell; 2]>);

impl Counters {
    /// Notes the rules of a call that is not counted, if there are none.
    pub(super) fn note_first(&mut self, traced: &Arc<TracedRules>) {
        self.traced.get_or_insert_with(|| Arc::clone(traced));
    }

    /// Notes the rules, by which the subject is remembered if it is replaced.
    #[inline]
    pub(super) fn note(&mut self, traced: &Arc<TracedRules>) {
        if !self.traced.as_ref().is_some_and(|known| Arc::ptr_eq(known, traced)) {
            self.traced = Some(Arc::clone(traced));
        }
    }

    pub(super) fn reach_us(&self) -> Option<u64> {
        Some(self.traced.as_ref()?.reach_us)
    }

    /// Leaves a trace of denials or a ban. Returns whether there was room; if not, there is none.
    pub(super) fn leave_penalties(&self, segment: &str, hash: u64, trace: &mut RemnantTable, now_us: u64) -> bool {
        let within_us = self.traced.as_ref().map_or(0, |traced| traced.within_us);
        let leaves = |state: &BanState| state.leave(within_us, segment, hash, trace, now_us);
        within_us == 0 || self.ban_state.as_deref().is_none_or(leaves)
    }

    /// Leaves a trace of what is counted by the rules of this layout.
    pub(super) fn leave_cells(&self, segment: &str, hash: u64, trace: &mut RemnantTable, now_us: u64) {
        let Some(traced) = &self.traced else { return };
        for (index, (cell, rule)) in self.cells.iter().zip(&traced.celled).enumerate() {
            if !is_set_back(cell.latest_us(), now_us) {
                for (place, remnant) in places_of_cell(index).into_iter().zip(rule.remnants(*cell, now_us)) {
                    let key = TraceKey::new(hash, segment, place).named(rule.remnants_are_named());
                    trace.add(key, &[remnant], now_us);
                }
            }
        }
    }

    /// Counts what is left of a subject by the rules of this layout. Returns when it counts no more.
    pub(super) fn restore(
        &mut self,
        traced: &Arc<TracedRules>,
        segment: &str,
        hash: u64,
        trace: &mut RemnantTable,
        now_us: u64,
    ) -> u64 {
        self.note_first(traced);
        let mut expires_us = 0;
        for (index, (cell, rule)) in self.cells.iter_mut().zip(&traced.celled).enumerate() {
            let key = |place| TraceKey::new(hash, segment, place).named(rule.remnants_are_named());
            let found = places_of_cell(index).map(|place| trace.find(key(place), now_us));
            if found.iter().all(Remnants::is_empty) {
                continue;
            }
            let restored = |found: &[Remnants; 2]| rule.restored(found.each_ref().map(|found| &**found), now_us);
            *cell = restored(&found);
            expires_us = expires_us.max(rule.expires_us(*cell));
            if found.iter().flatten().any(|remnant| remnant.is_joined) {
                let own = restored(&places_of_cell(index).map(|place| trace.find_own(key(place), now_us)));
                let none = || Box::new(RestoredCells(vec![[Cell::default(); 2]; traced.celled.len()]));
                if let Some(restored) = self.restored.get_or_insert_with(none).0.get_mut(index) {
                    *restored = [*cell, own];
                }
            }
        }
        if traced.within_us > 0 {
            let state = BanState::restored(traced, segment, hash, trace, now_us);
            expires_us = expires_us.max(state.expires_us(traced.within_us));
            self.ban_state = Some(Box::new(state)).filter(|state| state.expires_us(traced.within_us) > 0);
        }
        expires_us
    }

    pub(super) fn new(cells: usize) -> Self {
        Self { cells: vec![Cell::default(); cells].into(), ..Self::default() }
    }

    pub(super) fn cells(&self) -> impl Iterator<Item = Cell> {
        self.cells.iter().copied()
    }

    pub(super) fn is_banned(&self, now_us: u64) -> bool {
        self.ban_wait(now_us).is_some()
    }

    fn ban_wait(&self, now_us: u64) -> Option<Wait> {
        self.ban_state.as_deref()?.wait(now_us)
    }

    /// When neither denials nor a ban count any more.
    fn penalties_expire_us(&self, within_us: u64) -> u64 {
        self.ban_state.as_deref().map_or(0, |state| state.expires_us(within_us))
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
    #[inline]
    pub(super) fn admit(&mut self, group: &RuleGroup, cost: u64, now_us: u64) -> Option<DecidedByCell> {
        let expires_us = self.penalties_expire_us(group.traced.within_us);
        let mut all = DecidedByCell { wait: Wait::NONE, plain: Wait::NONE, expires_us };
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
        if let Some(wait) = self.ban_wait(now_us) {
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

    /// Whether others have left anything that was counted.
    pub(super) fn counts_others(&self) -> bool {
        self.restored.is_some()
    }

    /// Whether every rule would admit a call without what others have left.
    pub(super) fn admits_without_others(&self, group: &RuleGroup, cost: u64, now_us: u64) -> bool {
        let leases = group.concurrency();
        let has_lease = leases.is_none_or(|(rule, us)| self.leases.wait(rule.count(), us, now_us).is_none());
        has_lease
            && self.cells.iter().zip(&group.celled).enumerate().all(|(index, (cell, (_, rule)))| {
                let own = match self.restored.as_deref().and_then(|restored| restored.0.get(index)) {
                    Some(restored) => rule.without_others(*cell, *restored, now_us),
                    None => rule.at(*cell, now_us),
                };
                rule.wait(own, cost, now_us).is_none()
            })
    }

    /// Counts the call with every rule; returns how long a call of cost 1 would have to wait now.
    pub(super) fn charge(&mut self, group: &RuleGroup, cost: u64, now_us: u64) -> Wait {
        self.note(&group.traced);
        let mut longest = Wait::NONE;
        for (cell, (_, rule)) in self.cells.iter_mut().zip(&group.celled) {
            longest = longest.max(rule.charge(cell, cost, now_us));
        }
        longest
    }

    pub(super) fn deny(&mut self, group: &RuleGroup, now_us: u64) {
        if let Some(ban) = &group.ban {
            self.note_first(&group.traced);
            self.ban_state.get_or_insert_default().deny(ban, now_us);
        }
    }

    /// Bans the subject for this time, or ends its ban if this is 0. Earlier denials no longer count.
    pub(super) fn ban(&mut self, duration_us: u64, now_us: u64) {
        self.ban_state = (duration_us > 0).then(|| Box::new(BanState::ban(duration_us, now_us)));
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

    /// Raises the count of a rule until at most `most` is left, if it still counts a call that was admitted at
    /// `admitted_us`, and would count the raise for at most twice the time until the reset.
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
        cells.max().unwrap_or_default().max(self.penalties_expire_us(group.traced.within_us))
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
    /// Begins a ban of this duration.
    fn ban(duration_us: u64, now_us: u64) -> Self {
        Self { began_us: now_us, ends_us: now_us + duration_us, ..Self::default() }
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

    /// When nothing counts any more. A denial counts for this time.
    fn expires_us(&self, within_us: u64) -> u64 {
        self.denials_us.back().map_or(0, |last| last + within_us).max(self.ends_us)
    }

    /// Leaves a trace. Returns whether there was room; if not, there is none.
    fn leave(&self, within_us: u64, segment: &str, hash: u64, trace: &mut RemnantTable, now_us: u64) -> bool {
        let [denials, ban] = [DENIALS, BAN].map(|place| TraceKey::alone(hash, segment, place));
        let now_us = self.denials_us.back().map_or(now_us, |last_us| clock::settled(*last_us, now_us));
        // Denials from before the ban may still be in the trace. They stay there, because they may be those of another subject.
        match self.wait(now_us) {
            Some(_) => trace.add(ban, &[Remnant::until(self.ends_us, 1)], now_us),
            None => trace.add(denials, &self.parts(within_us, now_us), now_us),
        }
    }

    /// Returns upper bounds of the denials that count: how many until each of some times.
    fn parts(&self, within_us: u64, now_us: u64) -> ArrayVec<Remnant, PARTS> {
        let first = self.denials_us.iter().take_while(|at_us| **at_us + within_us <= now_us).count();
        let counting = self.denials_us.len() - first;
        let step = counting.div_ceil(PARTS).max(1);
        let ends = self.denials_us.iter().skip(first).rev().step_by(step);
        let amounts = (1..=PARTS).map(|part| (part * step).min(counting) as u64);
        ends.zip(amounts).map(|(at_us, amount)| Remnant::until(at_us + within_us, amount)).collect()
    }

    /// Returns what is left of a subject by the rules of this layout.
    fn restored(traced: &TracedRules, segment: &str, hash: u64, trace: &mut RemnantTable, now_us: u64) -> Self {
        let [denials, ban] = [DENIALS, BAN].map(|place| TraceKey::alone(hash, segment, place));
        if let Some(ban) = trace.find(ban, now_us).last() {
            return Self { began_us: now_us, ends_us: ban.ends_us, ..Self::default() };
        }
        // A subject with as many denials as lead to a ban would be banned, so it has fewer. The newest ones count longest.
        let most = usize::try_from(traced.denials.saturating_sub(1)).unwrap_or(usize::MAX);
        let mut denials_us = VecDeque::new();
        for remnant in trace.find(denials, now_us).iter().rev() {
            let at_us = remnant.ends_us.saturating_sub(traced.within_us).min(now_us);
            let until = usize::try_from(remnant.amount).unwrap_or(usize::MAX).min(most);
            while denials_us.len() < until {
                denials_us.push_front(at_us);
            }
        }
        Self { denials_us, ..Self::default() }
    }

    /// Removes what is left of denials and of a ban in a trace.
    pub(super) fn forget(segment: &str, hash: u64, trace: &mut RemnantTable, now_us: u64) {
        for place in [DENIALS, BAN] {
            trace.remove(TraceKey::alone(hash, segment, place), now_us);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_a_subject_without_denials_take_eight_words() {
        assert_eq!(size_of::<Counters>(), size_of::<[usize; 8]>());
    }
}
