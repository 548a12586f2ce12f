//! The tallies of a subject's units, beside that which the entry is named after.

use std::mem;
use std::sync::Arc;

use super::{Tally, UnitTally};
use crate::call::UnitCall;
use crate::policy::RuleGroup;
use crate::store::memory::log::Log;
use crate::store::memory::trace::Left;

/// The tallies of several groups in one entry.
pub(in crate::store::memory) struct GroupTallies<'t> {
    tally: &'t mut Tally,
    groups: SplitGroups<'t>,
}

/// The group that an entry is named after, if it is one of a policy, and the groups beside it.
type SplitGroups<'a> = (Option<&'a RuleGroup>, &'a [RuleGroup]);

impl GroupTallies<'_> {
    /// Visits each tally, with its group.
    #[inline(always)]
    #[allow(
        clippy::inline_always,
        reason = "it has several callers, so that the compiler would not do it for calls that are denied"
    )]
    pub(in crate::store::memory) fn for_each(&mut self, mut visit: impl FnMut(&RuleGroup, &mut Tally)) {
        let (own, beside) = self.groups;
        if let Some(own) = own {
            visit(own, self.tally);
        }
        let units = self.tally.more.as_deref_mut().map(|more| &mut more.units);
        for (unit, group) in units.into_iter().flatten().zip(beside) {
            visit(group, &mut unit.tally);
        }
    }
}

/// No group is the one that the entry is named after if no rule counts calls, or if an override has changed their windows.
#[inline]
fn split(groups: &[RuleGroup]) -> SplitGroups<'_> {
    match groups {
        [first, beside @ ..] if first.has_own_entry() => (Some(first), beside),
        beside => (None, beside),
    }
}

impl Tally {
    /// Returns the tally of this group, which is this one or that of a unit beside it; a new one if there is none.
    pub(in crate::store::memory) fn of(&mut self, group: &RuleGroup, left: Left<'_>) -> &mut Self {
        if group.has_own_entry() {
            return self;
        }
        let units = &mut self.more.get_or_insert_default().units;
        let place = units.iter().position(|unit| unit.is_of(group)).unwrap_or_else(|| {
            // Most subjects have one unit, or few: the room for more would be that of several subjects.
            units.reserve_exact(1);
            units.push(UnitTally::new(group, left));
            units.len() - 1
        });
        &mut units[place].tally
    }

    #[inline]
    pub(in crate::store::memory) fn find(&mut self, group: &RuleGroup) -> Option<&mut Self> {
        if group.has_own_entry() {
            return Some(self);
        }
        let units = &mut self.more.as_deref_mut()?.units;
        units.iter_mut().find(|unit| unit.is_of(group)).map(|unit| &mut unit.tally)
    }

    /// Forgets what the tally of this group counts; returns whether anything is left in it and in those of units.
    pub(in crate::store::memory) fn forget(&mut self, group: &RuleGroup) -> bool {
        let mut units = self.more.as_deref_mut().map(|more| mem::take(&mut more.units)).unwrap_or_default();
        if group.has_own_entry() {
            *self = Self::new(group.cells());
        } else {
            units.retain(|unit| !unit.is_of(group));
        }
        let is_left = self.expires_us > 0 || !units.is_empty();
        if !units.is_empty() {
            self.more.get_or_insert_default().units = units;
        }
        is_left
    }

    /// Returns the tallies of these groups, which are this one and those of units. Those that are missing are added.
    pub(in crate::store::memory) fn of_several<'t>(
        &'t mut self,
        groups: &'t [RuleGroup],
        left: Left<'_>,
    ) -> GroupTallies<'t> {
        let groups = split(groups);
        let (_, beside) = groups;
        if !self.has_in_order(beside) {
            arrange(&mut self.more.get_or_insert_default().units, beside, left);
        }
        GroupTallies { tally: self, groups }
    }

    fn has_in_order(&self, beside: &[RuleGroup]) -> bool {
        let units = self.all_units();
        units.len() >= beside.len() && units.iter().zip(beside).all(|(unit, group)| unit.is_of(group))
    }

    /// Counts a call in the tallies of these groups, if sliding windows alone decide it and all of them admit it at this
    /// time; returns whether they do.
    #[inline]
    pub(in crate::store::memory) fn count_in_windows(
        &mut self,
        groups: &[RuleGroup],
        call: UnitCall<'_>,
        now_us: u64,
    ) -> bool {
        let (own, beside) = split(groups);
        let Self { log, more, expires_us } = self;
        let units = more.as_deref_mut().map_or(&mut [][..], |more| &mut more.units);
        let has_room = |log: &Log, group: &RuleGroup| log.has_room(group, call.needed_of(group), now_us);
        let have_room = units.len() >= beside.len()
            && own.is_none_or(|own| has_room(log, own))
            && units.iter().zip(beside).all(|(unit, group)| unit.is_of(group) && has_room(&unit.tally.log, group));
        if !have_room {
            return false;
        }
        let count = |log: &mut Log, expires_us: &mut u64, group: &RuleGroup| {
            let charged = call.charged_to(group);
            if charged > 0 {
                log.charge(group, charged, now_us);
                log.note_room(group, now_us);
                *expires_us = now_us + group.reach_us;
            }
        };
        if let Some(own) = own {
            count(log, expires_us, own);
        }
        for (UnitTally { tally, .. }, group) in units.iter_mut().zip(beside) {
            count(&mut tally.log, &mut tally.expires_us, group);
        }
        true
    }

    /// The segments of all tallies in which something counts; `own` is that of this one.
    #[cfg(feature = "admin")]
    pub(in crate::store::memory) fn counting<'a>(&'a self, own: &'a str, now_us: u64) -> impl Iterator<Item = &'a str> {
        let own = (self.expires_us > now_us && !self.is_idle()).then_some(own);
        let counting = self.all_units().iter().filter(move |unit| !unit.tally.is_expired(now_us));
        own.into_iter().chain(counting.map(|unit| &*unit.segment))
    }
}

impl UnitTally {
    fn new(group: &RuleGroup, left: Left<'_>) -> Self {
        Self { segment: Arc::clone(&group.segment), tally: Tally::of_left(group, left) }
    }

    #[inline]
    fn is_of(&self, group: &RuleGroup) -> bool {
        group.has_segment(&self.segment)
    }
}

/// Moves the tallies of these groups to the front, in this order.
#[cold]
fn arrange(units: &mut Vec<UnitTally>, groups: &[RuleGroup], left: Left<'_>) {
    units.reserve_exact(groups.len().saturating_sub(units.len()));
    for (place, group) in groups.iter().enumerate() {
        let known = units.iter().skip(place).position(|unit| unit.is_of(group)).map(|behind| place + behind);
        let known = known.unwrap_or_else(|| {
            units.push(UnitTally::new(group, left));
            units.len() - 1
        });
        units.swap(place, known);
    }
}
