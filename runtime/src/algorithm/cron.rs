//! Windows between the ticks of a schedule.

use std::borrow::Cow;
use std::iter;
use std::sync::{Arc, Mutex};

use tallygate_rules::{Rule, Schedule};

use super::counting::{Cell, Celled, CostChange, Counting, Kept, Quota, Remnant, Span};
#[cfg(feature = "redis")]
use super::counting::{TickLists, pack_integer, pack_rule};
use super::fixed_window::{corrected_if, quota, wait};
use crate::lock::lock;
use crate::wait::Wait;

/// The most ticks that are counted. A schedule with more ticks within a wait has no bound, so it turns nobody away.
const MOST_TICKS: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct WindowsOfSchedule<'a> {
    count: u64,
    schedule: Cow<'a, Schedule>,
}

impl<'a> WindowsOfSchedule<'a> {
    pub(super) fn new(rule: &Rule, schedule: &'a Schedule) -> Self {
        Self { count: rule.count(), schedule: Cow::Borrowed(schedule) }
    }
}

impl Counting for WindowsOfSchedule<'_> {
    fn kept(&self) -> Kept {
        let schedule = Cow::Owned(Schedule::clone(&self.schedule));
        Kept::Cell(Arc::new(WindowsOfSchedule { count: self.count, schedule }))
    }

    fn memory_us(&self) -> u64 {
        0
    }

    fn slides(&self) -> bool {
        false
    }

    fn most_admitted(&self, within: Span, _room: Option<u64>) -> Option<u64> {
        let next = |us: u64| self.schedule.next_tick_us(us);
        let ticks = iter::successors(next(within.from_us), |us| next(*us));
        let ticks = ticks.take_while(|us| *us <= within.until_us).take(MOST_TICKS).count();
        (ticks < MOST_TICKS).then(|| self.count.saturating_mul(ticks as u64 + 1))
    }

    #[cfg(feature = "redis")]
    fn pack(&self, packed: &mut Vec<u8>, ticks: &mut TickLists<'_>) {
        let ticks: &[u64] = ticks.next().map_or(&[], |ticks| ticks);
        pack_rule(packed, tallygate_lua::CRON, self.count, ticks.len() as u64);
        for &tick in ticks {
            pack_integer(packed, tick);
        }
    }

    #[cfg(feature = "redis")]
    fn work_ns(&self, _is_reported: bool) -> u32 {
        /// The work for each of at most `TICKS` ticks.
        const TICK: u32 = 400;
        const TICKS: u32 = 10;
        TICKS * TICK
    }
}

impl Celled for WindowsOfSchedule<'_> {
    fn tag(&self) -> String {
        format!("k{}@{}", self.schedule.expression(), self.schedule.zone())
    }

    fn at(&self, cell: Cell, now_us: u64) -> Cell {
        // The next tick is stored, so the schedule is evaluated once per window.
        if now_us < cell.other {
            return cell;
        }
        // A schedule without a next tick never starts a new window.
        let coming = self.schedule.next_tick_us(now_us).unwrap_or(u64::MAX);
        Cell { stamp_us: now_us, amount: 0, other: coming, ..cell }
    }

    fn wait(&self, cell: Cell, cost: u64, now_us: u64) -> Wait {
        wait(cell, self.count, cell.other, cost, now_us)
    }

    fn charged(&self, cell: Cell, cost: u64, now_us: u64) -> Cell {
        Cell { stamp_us: now_us, amount: cell.amount + cost, ..cell }
    }

    fn refunded(&self, cell: Cell, costs: CostChange, admitted_us: u64, now_us: u64) -> Cell {
        let last_tick_us = self.schedule.last_tick_us(now_us).unwrap_or(0);
        // Hits that are later than the last one were forgotten when the clock was set back.
        corrected_if(last_tick_us <= admitted_us && admitted_us <= cell.stamp_us, cell, costs)
    }

    fn quota(&self, cell: Cell, now_us: u64) -> Quota {
        quota(cell, self.count, cell.other, now_us)
    }

    fn restored(&self, [remnants, _]: [&[Remnant]; 2], now_us: u64) -> Cell {
        let coming_us = self.schedule.next_tick_us(now_us).unwrap_or(u64::MAX);
        // What ends before the next tick is of a window that is over, and was rounded up. Without a tick, no window ends.
        let from_us = if coming_us == u64::MAX { 0 } else { coming_us };
        let amount = Remnant::most_from(remnants, from_us);
        Cell { stamp_us: now_us, amount, other: coming_us, ..Cell::default() }
    }

    fn expires_us(&self, cell: Cell) -> u64 {
        cell.other
    }
}

/// The number of ticks that are sent beyond the last one: eight seconds of a schedule of every second.
const AHEAD: usize = 8;

/// The ticks around the present time of each rule with a schedule, cached until they are over.
#[derive(Debug)]
pub(crate) struct Ticks {
    rules: Vec<(Schedule, Mutex<Arc<[u64]>>)>,
}

impl Ticks {
    pub(crate) fn new(rules: &[Rule]) -> Self {
        let schedules = rules.iter().filter_map(Rule::schedule);
        Self { rules: schedules.map(|schedule| (schedule.clone(), Mutex::default())).collect() }
    }

    /// Returns the ticks around that time of each rule with a schedule, in the order of the rules.
    pub(crate) fn around(&self, now_us: u64) -> impl Iterator<Item = Arc<[u64]>> {
        self.rules.iter().map(move |(schedule, known)| {
            let mut known = lock(known);
            if !are_around(&known, now_us) {
                *known = around(schedule, now_us);
            }
            Arc::clone(&known)
        })
    }
}

/// Returns whether the time is in the first half of these ticks. The other half is for calls that arrive late.
fn are_around(ticks: &[u64], now_us: u64) -> bool {
    ticks.first().is_some_and(|&first| first <= now_us) && ticks.get(ticks.len() / 2).is_some_and(|&half| now_us < half)
}

fn around(schedule: &Schedule, now_us: u64) -> Arc<[u64]> {
    let last = schedule.last_tick_us(now_us).unwrap_or(0);
    // The tick before the last one is kept, because this clock may be a little ahead of the server's.
    let before = last.checked_sub(1).and_then(|us| schedule.last_tick_us(us));
    let ahead = iter::successors(schedule.next_tick_us(now_us), |&tick| schedule.next_tick_us(tick)).take(AHEAD);
    before.into_iter().chain([last]).chain(ahead).collect()
}
