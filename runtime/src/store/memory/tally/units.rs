//! The tallies of a subject's units, beside that which the entry is named after.

use std::mem;
use std::sync::Arc;

use super::{Tally, UnitTally};
use crate::call::UnitCall;
use crate::policy::RuleGroup;

/// The tallies of several groups in one entry.
pub(in crate::store::memory) struct GroupTallies<'t> {
    tally: &'t mut Tally,
    groups: SplitGroups<'t>,
}

/// The group that an entry is named after, if it is one of a policy, and the groups beside it.
type SplitGroups<'a> = (Option<&'a RuleGroup>, &'a [RuleGroup]);

impl GroupTallies<'_> {
    /// Visits each tally, with its group.
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

/// An override may have changed the group that an entry is named after.
#[inline]
fn split(groups: &[RuleGroup]) -> SplitGroups<'_> {
    match groups {
        [first, beside @ ..] if first.has_own_entry() => (Some(first), beside),
        beside => (None, beside),
    }
}

impl Tally {
    /// Returns the tally of this group, which is this one or that of a unit beside it; a new one if there is none.
    pub(in crate::store::memory) fn of(&mut self, group: &RuleGroup) -> &mut Self {
        if group.has_own_entry() {
            return self;
        }
        let units = &mut self.more.get_or_insert_default().units;
        let place = units.iter().position(|unit| unit.is_of(group)).unwrap_or_else(|| {
            units.push(UnitTally::new(group));
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
    pub(in crate::store::memory) fn of_several<'t>(&'t mut self, groups: &'t [RuleGroup]) -> GroupTallies<'t> {
        let groups = split(groups);
        let (_, beside) = groups;
        if !self.has_in_order(beside) {
            arrange(&mut self.more.get_or_insert_default().units, beside);
        }
        GroupTallies { tally: self, groups }
    }

    fn has_in_order(&self, beside: &[RuleGroup]) -> bool {
        let units = self.all_units();
        units.len() >= beside.len() && units.iter().zip(beside).all(|(unit, group)| unit.is_of(group))
    }

    /// Whether the policy of the call has only sliding windows, and all of them admit it at this time.
    #[inline]
    pub(in crate::store::memory) fn have_room(&self, call: UnitCall<'_>, now_us: u64) -> bool {
        let has_room =
            |tally: &Self, group: &RuleGroup| tally.has_room_in_windows(group, call.needed_of(group), now_us);
        let ((own, beside), units) = (split(call.policy.groups()), self.all_units());
        units.len() >= beside.len()
            && own.is_none_or(|own| has_room(self, own))
            && units.iter().zip(beside).all(|(unit, group)| unit.is_of(group) && has_room(&unit.tally, group))
    }

    /// Counts a call for which these windows [have room](Self::have_room).
    #[inline]
    pub(in crate::store::memory) fn charge_windows(&mut self, call: UnitCall<'_>, now_us: u64) {
        let (own, beside) = split(call.policy.groups());
        if let Some(own) = own {
            self.charge_windows_of(own, call.charged_to(own), now_us);
        }
        let Some(more) = self.more.as_deref_mut() else { return };
        for (unit, group) in more.units.iter_mut().zip(beside) {
            unit.tally.charge_windows_of(group, call.charged_to(group), now_us);
        }
    }

    /// The segments of all tallies in which something counts; `own` is that of this one.
    #[cfg(feature = "admin")]
    pub(in crate::store::memory) fn counting<'a>(&'a self, own: &'a str, now_us: u64) -> impl Iterator<Item = &'a str> {
        let own = (self.expires_us > now_us).then_some(own);
        let counting = self.all_units().iter().filter(move |unit| !unit.tally.is_expired(now_us));
        own.into_iter().chain(counting.map(|unit| &*unit.segment))
    }
}

impl UnitTally {
    fn new(group: &RuleGroup) -> Self {
        Self { segment: Arc::clone(&group.segment), tally: Tally::new(group.cells()) }
    }

    #[inline]
    fn is_of(&self, group: &RuleGroup) -> bool {
        group.has_segment(&self.segment)
    }
}

/// Moves the tallies of these groups to the front, in this order.
#[cold]
fn arrange(units: &mut Vec<UnitTally>, groups: &[RuleGroup]) {
    for (place, group) in groups.iter().enumerate() {
        let known = units.iter().skip(place).position(|unit| unit.is_of(group)).map(|behind| place + behind);
        let known = known.unwrap_or_else(|| {
            units.push(UnitTally::new(group));
            units.len() - 1
        });
        units.swap(place, known);
    }
}
