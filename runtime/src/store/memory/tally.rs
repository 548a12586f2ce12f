//! A tally: a log and cells, and the tallies of units beside it.

mod recount;
mod trace;
mod units;

use std::sync::Arc;

pub(super) use self::units::GroupTallies;
use super::counters::{self, Counters};
use super::log::Log;
use crate::algorithm::{Quota, Window};
use crate::call::LeaseName;
use crate::clock::is_set_back;
use crate::decision::Wait;
use crate::policy::RuleGroup;
use crate::store::Outcome;
use crate::store::outcome_builder::OutcomeBuilder;

/// How long a tally is kept after a concurrent call that has ended, or after a refund of all it has counted: one that calls every moment
/// keeps its tally.
const KEPT_US: u64 = 1_000_000;

/// What one rule group has counted of one subject. That of its calls has those of its units with it.
#[derive(Debug)]
pub(super) struct Tally {
    /// The calls that the sliding windows have admitted.
    log: Log,
    /// What most subjects do not have.
    more: Option<Box<More>>,
    /// When nothing counts any more, without the units.
    expires_us: u64,
}

#[derive(Debug, Default)]
struct More {
    /// The state of all rules that are no sliding windows, and of a ban.
    counters: Counters,
    units: Vec<UnitTally>,
}

/// The tally of a unit, beside that which the entry is named after.
#[derive(Debug)]
struct UnitTally {
    segment: Arc<str>,
    tally: Tally,
}

impl Tally {
    /// Returns the tally of a group with so many [cells](RuleGroup::cells).
    pub(super) fn new(cells: Option<usize>) -> Self {
        let more = cells.map(|cells| Box::new(More { counters: Counters::new(cells), units: Vec::new() }));
        Self { log: Log::default(), more, expires_us: 0 }
    }

    #[inline]
    fn all_units(&self) -> &[UnitTally] {
        self.more.as_deref().map_or(&[], |more| &more.units)
    }

    /// Whether nothing counts any more.
    pub(super) fn is_expired(&self, now_us: u64) -> bool {
        self.expires_us <= now_us && self.all_units().iter().all(|unit| unit.tally.is_expired(now_us))
    }

    /// Whether a ban or the rules of the last call deny a call of cost 1, or calls are running.
    pub(super) fn is_denied(&self, now_us: u64) -> bool {
        let is_banned = |more: &More| more.counters.is_banned(now_us);
        // A count of 0 denies for ever, but by a tally in which nothing counts.
        (now_us < self.expires_us && now_us < self.log.denied_until_us())
            || self.more.as_deref().is_some_and(is_banned)
            || self.is_running()
            || self.all_units().iter().any(|unit| unit.tally.is_denied(now_us))
    }

    /// Less for a subject that was used less: by the weight in its logs, which may also be of calls that have ended, then by
    /// when nothing counts any more. A bucket is full at that time.
    pub(super) fn rank(&self) -> (u64, u64) {
        let of_units = self.all_units().iter().map(|unit| unit.tally.log.weight());
        (self.log.weight() + of_units.sum::<u64>(), self.expires_us)
    }

    pub(super) fn is_banned(&self, now_us: u64) -> bool {
        self.more.as_deref().is_some_and(|more| more.counters.is_banned(now_us))
    }

    /// Decides a call that needs only this tally, and counts it.
    // A function of its own: its registers would slow down calls that have only sliding windows.
    #[inline(never)]
    pub(super) fn decide(&mut self, group: &RuleGroup, cost: u64, now_us: u64) -> Outcome {
        let now_us = self.settle_time(group, now_us);
        if self.admit(group, cost, now_us) {
            return Outcome::Admitted;
        }
        let mut builder = OutcomeBuilder::new();
        self.ask(group, 0, cost, now_us, &mut builder);
        let outcome = builder.build();
        match outcome {
            Outcome::Admitted if cost > 0 => self.charge(group, cost, now_us),
            Outcome::Denied { .. } => {
                self.count_if_early(group, cost, now_us);
                self.deny(group, if cost == 1 { Some(builder.wait()) } else { None }, now_us);
            }
            _ => {}
        }
        outcome
    }

    /// Counts a call if all rules admit it; returns whether they do. This is the short way of most calls: it finds out
    /// nothing of what a denial says.
    #[inline]
    fn admit(&mut self, group: &RuleGroup, cost: u64, now_us: u64) -> bool {
        let Some(More { counters, .. }) = self.more.as_deref_mut() else { return false };
        let may_fit = cost > 0 && !counters.is_banned(now_us);
        if !may_fit || !self.log.admits(group, cost, now_us) {
            return false;
        }
        let Some(decided) = counters.admit(group, cost, now_us) else { return false };
        counters.note(&group.traced);
        if group.largest > 0 {
            self.log.charge(group, cost, now_us);
        }
        self.expires_us = decided.expires_us.max(now_us + group.reach_us);
        let plain = self.log.plain_wait(group, now_us).max(decided.plain);
        self.log.set_denied_until(plain, None, now_us);
        true
    }

    /// Whether sliding windows alone decide a call that needs so much, and admit it at this time.
    #[inline]
    pub(super) fn has_room(&self, group: &RuleGroup, needed: u64, now_us: u64) -> bool {
        self.log.has_room(group, needed, now_us)
    }

    /// Counts a call for which there [is room](Self::has_room).
    #[inline(never)]
    pub(super) fn count(&mut self, group: &RuleGroup, charged: u64, now_us: u64) {
        if charged > 0 {
            self.log.charge(group, charged, now_us);
            self.log.note_room(group, now_us);
            self.expires_us = now_us + group.reach_us;
        }
    }

    /// Decides a call of a group with only one rule, which keeps a cell, and counts it; returns how long the call has to
    /// wait.
    #[inline(never)]
    pub(super) fn decide_by_cell(&mut self, group: &RuleGroup, cost: u64, now_us: u64) -> Wait {
        let now_us = self.settle_time(group, now_us);
        // Without a cell, nothing is admitted.
        let (Some(only), Some(more)) = (group.only_cell(), &mut self.more) else { return Wait::NEVER };
        let decided = more.counters.decide(only, cost, now_us);
        if decided.wait.is_none() {
            more.counters.note(&group.traced);
        } else {
            self.count_if_early(group, cost, now_us);
        }
        self.log.set_denied_until(decided.plain, None, now_us);
        self.expires_us = self.expires_us.max(decided.expires_us);
        decided.wait
    }

    /// Decides a call of a group that has only sliding windows, and counts it; returns how long the call has to wait.
    #[inline]
    pub(super) fn decide_by_windows(&mut self, group: &RuleGroup, cost: u64, now_us: u64) -> Wait {
        let [only] = &*group.windows else { return self.decide_by_several_windows(group, cost, now_us) };
        if cost == 1
            && let Some(wait) = self.log.known_wait(only, now_us)
        {
            return wait;
        }
        let longest_wait = |log: &Log, cost| log.wait(only, cost, now_us);
        self.decide_by_log(group, Some(only), longest_wait, cost, now_us)
    }

    #[inline(never)]
    fn decide_by_several_windows(&mut self, group: &RuleGroup, cost: u64, now_us: u64) -> Wait {
        let longest_wait = |log: &Log, cost| log.longest_wait(&group.windows, cost, now_us);
        self.decide_by_log(group, None, longest_wait, cost, now_us)
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "it has two callers, so that the compiler would not do it for one window")]
    fn decide_by_log(
        &mut self,
        group: &RuleGroup,
        only: Option<&Window>,
        longest_wait: impl Fn(&Log, u64) -> Wait,
        cost: u64,
        now_us: u64,
    ) -> Wait {
        let wait = longest_wait(&self.log, cost);
        if wait.is_none() && cost > 0 {
            self.log.charge(group, cost, now_us);
            self.expires_us = now_us + group.reach_us;
        }
        // The wait of this call is also that of a call of cost 1.
        let is_known = cost == 1 && !wait.is_none();
        let plain = if is_known { wait } else { longest_wait(&self.log, 1) };
        self.log.set_denied_until(plain, only, now_us);
        wait
    }

    /// Counts a denial by sliding windows if it is early. Returns the place of the rule to report.
    // A function of its own, so that a call that is admitted does not contain its code.
    #[inline(never)]
    pub(super) fn denied_by_window(&self, group: &RuleGroup, cost: u64, now_us: u64) -> usize {
        self.count_if_early(group, cost, now_us);
        match &*group.windows {
            [only] => only.place,
            _ => self.denying_of_windows(group, cost, now_us),
        }
    }

    fn denying_of_windows(&self, group: &RuleGroup, cost: u64, now_us: u64) -> usize {
        let mut builder = OutcomeBuilder::new();
        self.log.ask(group, 0, cost, now_us, &mut builder);
        builder.denying()
    }

    /// Returns the time as of which a call is decided. If the clock has gone back by little, it stands still. If it was
    /// set back, entries that are later than now are forgotten, because they would block for longer than their window.
    #[inline]
    pub(super) fn settle_time(&mut self, group: &RuleGroup, now_us: u64) -> u64 {
        let counters_us = self.more.as_deref().map_or(0, |more| more.counters.latest_us());
        self.settle_time_after(group, self.log.latest_us().max(counters_us), now_us)
    }

    /// Returns the same for a group that has only sliding windows.
    #[inline]
    pub(super) fn settle_time_of_windows(&mut self, group: &RuleGroup, now_us: u64) -> u64 {
        self.settle_time_after(group, self.log.latest_us(), now_us)
    }

    #[inline]
    fn settle_time_after(&mut self, group: &RuleGroup, latest_us: u64, now_us: u64) -> u64 {
        if latest_us <= now_us { now_us } else { self.settle_time_back(group, latest_us, now_us) }
    }

    #[cold]
    fn settle_time_back(&mut self, group: &RuleGroup, latest_us: u64, now_us: u64) -> u64 {
        if !is_set_back(latest_us, now_us) {
            return latest_us;
        }
        if self.log.latest_us() > now_us {
            self.log.forget_future(now_us, group.reach_us);
        }
        if let Some(More { counters, .. }) = self.more.as_deref_mut() {
            counters.forget_future(now_us);
        }
        self.end_with_windows(group);
        now_us
    }

    /// Asks every rule, and whether the subject is banned. `first` is the place of the group's first rule.
    #[inline]
    pub(super) fn ask(&self, group: &RuleGroup, first: usize, cost: u64, now_us: u64, builder: &mut OutcomeBuilder) {
        self.log.ask(group, first, cost, now_us, builder);
        if let Some(More { counters, .. }) = self.more.as_deref() {
            counters.ask(group, first, cost, now_us, builder);
        } else if !group.celled.is_empty() {
            // A rule without its cell would be a mistake of this library. It admits nothing.
            builder.add_wait(first, Wait::NEVER);
        }
    }

    pub(super) fn charge(&mut self, group: &RuleGroup, cost: u64, now_us: u64) {
        if group.largest > 0 {
            self.log.charge(group, cost, now_us);
        }
        self.expires_us = now_us + group.reach_us;
        let mut wait = self.log.longest_wait(&group.windows, 1, now_us);
        if let Some(More { counters, .. }) = self.more.as_deref_mut() {
            wait = wait.max(counters.charge(group, cost, now_us));
            self.expires_us = self.expires_us.max(counters.expires_us(group));
        }
        self.log.set_denied_until(wait, None, now_us);
    }

    /// Counts a denial towards a ban. `plain` is how long a call of cost 1 would have to wait, if that is known.
    pub(super) fn deny(&mut self, group: &RuleGroup, plain: Option<Wait>, now_us: u64) {
        let plain = plain.unwrap_or_else(|| self.plain_wait(group, now_us));
        self.log.set_denied_until(plain, None, now_us);
        if let (Some(_), Some(More { counters, .. })) = (&group.ban, self.more.as_deref_mut()) {
            counters.deny(group, now_us);
            self.expires_us = self.expires_us.max(counters.expires_us(group));
        }
    }

    /// Bans the subject for this time, or ends its ban if this is 0. Earlier denials no longer count.
    pub(super) fn ban(&mut self, group: &RuleGroup, duration_us: u64, now_us: u64) {
        if let Some(More { counters, .. }) = self.more.as_deref_mut() {
            counters.note_first(&group.traced);
            counters.ban(duration_us, now_us);
            self.expires_us = self.expires_us.max(counters.expires_us(group));
        }
    }

    /// Lets the tally end one window after its last call, which a refund may have changed. The trace takes the length of the
    /// longest window from this time.
    fn end_with_windows(&mut self, group: &RuleGroup) {
        if group.is_windows {
            self.expires_us = self.expires_us.min(self.log.latest_us() + group.reach_us);
        }
    }

    #[inline]
    pub(super) fn report(&self, group: &RuleGroup, now_us: u64, quotas: &mut Vec<Quota>) {
        if let (Some((rule, lease_us)), Some(more)) = (group.concurrency(), &self.more) {
            quotas.push(more.counters.leases.quota(rule.count(), lease_us, now_us));
            return;
        }
        let mut windows = group.windows.iter().peekable();
        let mut cells = self.more.iter().flat_map(|more| more.counters.cells().zip(&group.celled));
        quotas.extend((0..group.rules.len()).map(|place| match windows.next_if(|window| window.place == place) {
            Some(window) => self.log.quota(window, now_us),
            None => cells.next().map_or(Quota::new(0, 0), |(cell, (_, rule))| counters::quota(cell, &**rule, now_us)),
        }));
    }

    /// How long the rules make a call of cost 1 wait.
    fn plain_wait(&self, group: &RuleGroup, now_us: u64) -> Wait {
        if group.is_windows {
            return self.log.plain_wait(group, now_us);
        }
        let mut builder = OutcomeBuilder::new();
        self.ask(group, 0, 1, now_us, &mut builder);
        builder.wait()
    }
}

/// The concurrent calls of a tally.
impl Tally {
    pub(super) fn is_running(&self) -> bool {
        self.more.as_deref().is_some_and(|more| !more.counters.leases.is_empty())
    }

    /// Keeps a tally whose calls were all refunded no longer than for a while.
    fn end_soon(&mut self, now_us: u64) {
        self.expires_us = self.expires_us.min(now_us + KEPT_US);
    }

    /// Whether nothing counts and it is only kept, so that the next call need not make it anew: its calls were refunded, or they were
    /// concurrent and have all ended.
    pub(super) fn is_idle(&self) -> bool {
        self.more.as_deref().map_or(self.log.latest_us() == 0, |more| more.counters.leases.are_over())
    }

    /// Takes a lease if the concurrency limit of the group leaves room.
    ///
    /// # Errors
    ///
    /// How long the call has to wait at most.
    #[inline]
    pub(super) fn lease(&mut self, group: &RuleGroup, now_us: u64) -> Result<LeaseName, Wait> {
        // Without a limit, or without a place for leases, nothing is admitted.
        let (Some((rule, lease_us)), Some(More { counters, .. })) = (group.concurrency(), self.more.as_deref_mut())
        else {
            return Err(Wait::NEVER);
        };
        let wait = counters.leases.wait(rule.count(), lease_us, now_us);
        if !wait.is_none() {
            return Err(wait);
        }
        let name = LeaseName::next();
        self.take_lease(name, now_us);
        Ok(name)
    }

    pub(super) fn has_lease(&self, name: LeaseName) -> bool {
        self.more.as_deref().is_some_and(|more| more.counters.leases.contains(name))
    }

    #[inline]
    pub(super) fn take_lease(&mut self, name: LeaseName, now_us: u64) {
        if let Some(More { counters, .. }) = self.more.as_deref_mut() {
            counters.leases.take(name, now_us);
            // The tally stays as long as a call is running.
            self.expires_us = u64::MAX;
        }
    }

    /// Returns whether the lease was there.
    #[inline]
    pub(super) fn give_back(&mut self, name: LeaseName) -> bool {
        let Some(More { counters, .. }) = self.more.as_deref_mut() else { return false };
        let Some(taken_us) = counters.leases.give_back(name) else { return false };
        if counters.leases.is_empty() {
            self.expires_us = taken_us + KEPT_US;
        }
        true
    }
}
