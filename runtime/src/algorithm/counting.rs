//! The questions that stores and layers ask an algorithm, and their answers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::wait::Wait;

/// A rule as the numbers of its algorithm. Times are in microseconds.
pub(crate) trait Counting {
    /// Returns what a tally keeps for the rule.
    fn kept(&self) -> Kept;

    /// Returns how long a hit counts, without regard to ticks.
    fn memory_us(&self) -> u64;

    /// Returns whether counted hits fade, so that calls may be made later than they were counted.
    fn slides(&self) -> bool;

    /// Returns the most that the rule admits within a span; `None` if there is no bound. `room` is the room at the
    /// beginning, if it is known.
    fn most_admitted(&self, within: Span, room: Option<u64>) -> Option<u64>;

    /// Adds the fields of the rule in the order of the header of `decide.lua`.
    #[cfg(feature = "redis")]
    fn pack(&self, packed: &mut Vec<u8>, ticks: &mut TickLists<'_>);

    /// Estimates the work of the server for this algorithm, beyond that for every rule, in nanoseconds.
    #[cfg(feature = "redis")]
    fn work_ns(&self, _is_reported: bool) -> u32 {
        0
    }
}

/// The ticks of each rule that follows a schedule, in the order of the rules.
#[cfg(feature = "redis")]
pub(crate) type TickLists<'a> = std::slice::Iter<'a, Arc<[u64]>>;

/// The state that a tally keeps for a rule.
pub(crate) enum Kept {
    /// The calls that the rule admitted, in the log of all sliding windows.
    Log(Window),
    Cell(Arc<dyn Celled>),
    /// The leases of running calls.
    Leases,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// The place of the rule in its group.
    pub(crate) place: usize,
    pub(crate) count: u64,
    pub(crate) per_us: u64,
    /// Whether the rule is against duplicates. Then every call weighs 1, whatever its cost.
    pub(crate) is_duplicate: bool,
}

/// A rule that keeps a cell. The methods take stored cells if they say so, and else cells that [`Self::at`] has brought
/// to the present time.
pub(crate) trait Celled: fmt::Debug + Send + Sync {
    /// Identifies the meaning of the cell in the layout of a tally. The count is no part of it, so a tally stays if the
    /// count changes.
    fn tag(&self) -> String;

    /// Returns a stored cell as it is at that time: past windows are empty, and tokens have flowed in.
    fn at(&self, cell: Cell, now_us: u64) -> Cell;

    fn wait(&self, cell: Cell, cost: u64, now_us: u64) -> Wait;

    /// Returns the time after which a call never fits again, even if it fits until then.
    fn lapse(&self, _cell: Cell, _cost: u64, _now_us: u64) -> Option<Wait> {
        None
    }

    fn charged(&self, cell: Cell, cost: u64, _now_us: u64) -> Cell {
        Cell { amount: cell.amount + cost, ..cell }
    }

    /// Returns the stored cell with the corrected cost of a call that was admitted at `admitted_us`, if the call still
    /// counts.
    fn refunded(&self, cell: Cell, costs: CostChange, admitted_us: u64, now_us: u64) -> Cell;

    /// Returns the stored cell with at most this much left, if a call that was admitted at `admitted_us` still counts.
    fn left(&self, cell: Cell, most: u64, admitted_us: u64, now_us: u64) -> Cell {
        let beyond = self.quota(self.at(cell, now_us), now_us).remaining.saturating_sub(most);
        if beyond == 0 || cell.is_after(now_us) {
            return cell;
        }
        self.refunded(cell, CostChange { charged: 0, used: beyond }, admitted_us, now_us)
    }

    fn quota(&self, cell: Cell, now_us: u64) -> Quota;

    /// Returns when a charged cell counts no more.
    fn expires_us(&self, cell: Cell) -> u64;

    /// Returns what is left of a stored cell whose subject is replaced: of what it counts now, and of what it counted
    /// before. Without an amount, nothing is left.
    fn remnants(&self, cell: Cell, _now_us: u64) -> [Remnant; 2] {
        [Remnant::until(self.expires_us(cell), cell.amount), Remnant::default()]
    }

    /// Whether the amount of a remnant names the parameters of the rule. Then remnants of different amounts say nothing about
    /// each other, and none is left out.
    fn remnants_are_named(&self) -> bool {
        false
    }

    /// Returns a cell that admits no more than the replaced one did. For each of its [`remnants`](Self::remnants), there
    /// are all that it may be. They may be rounded up, or joined with those of others.
    fn restored(&self, remnants: [&[Remnant]; 2], now_us: u64) -> Cell;

    /// Returns the stored cell as it is at that time without what others have left, where that can be told. `restored` is the cell as
    /// it was [restored](Self::restored), and as it would be of what the subject itself has left.
    fn without_others(&self, cell: Cell, restored: [Cell; 2], now_us: u64) -> Cell {
        let [cell, all, own] = [cell, restored[0], restored[1]].map(|cell| self.at(cell, now_us));
        Cell { amount: (cell.amount + own.amount).saturating_sub(all.amount), ..cell }
    }

    /// Returns how long a call has to wait by the stored cell, and after what time it never fits again.
    fn ask(&self, cell: Cell, cost: u64, now_us: u64) -> (Wait, Option<Wait>) {
        let cell = self.at(cell, now_us);
        (self.wait(cell, cost, now_us), self.lapse(cell, cost, now_us))
    }

    /// Counts a call in the stored cell, and returns how long a next call of cost 1 has to wait.
    fn charge(&self, cell: &mut Cell, cost: u64, now_us: u64) -> Wait {
        *cell = self.charged(self.at(*cell, now_us), cost, now_us);
        self.wait(*cell, 1, now_us)
    }

    /// Decides a call that no other rule decides, and counts it in the stored cell if the rule admits it.
    fn decide(&self, cell: &mut Cell, cost: u64, now_us: u64) -> DecidedByCell {
        let mut present = self.at(*cell, now_us);
        let mut wait = self.wait(present, cost, now_us);
        if !wait.is_none() {
            let lapses = self.lapse(present, cost, now_us).is_some_and(|lapse| lapse <= wait);
            wait = if lapses { Wait::NEVER } else { wait };
        } else if cost > 0 {
            present = self.charged(present, cost, now_us);
            *cell = present;
        }
        DecidedByCell { wait, plain: self.wait(present, 1, now_us), expires_us: self.expires_us(*cell) }
    }
}

/// An upper bound of what counts of a subject until a time. It is all that is kept of a subject that was replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remnant {
    pub(crate) ends_us: u64,
    pub(crate) amount: u64,
    /// Whether it was joined with another, which may be of another subject.
    pub(crate) is_joined: bool,
}

impl Remnant {
    pub(crate) fn until(ends_us: u64, amount: u64) -> Self {
        Self { ends_us, amount, is_joined: false }
    }

    pub(crate) fn covers(self, other: Self) -> bool {
        self.ends_us >= other.ends_us && self.amount >= other.amount
    }

    pub(crate) fn joined(self, other: Self) -> Self {
        Self { ends_us: self.ends_us.max(other.ends_us), amount: self.amount.max(other.amount), is_joined: true }
    }

    /// The greatest amount of those that end at a time or later.
    pub(super) fn most_from(remnants: &[Self], ends_us: u64) -> u64 {
        let later = remnants.iter().filter(|remnant| remnant.ends_us >= ends_us);
        later.map(|remnant| remnant.amount).max().unwrap_or_default()
    }

    pub(super) fn join_all(remnants: &[Self]) -> Self {
        remnants.iter().copied().reduce(Self::joined).unwrap_or_default()
    }
}

/// What the only rule of a tally says about a call, or all rules together.
pub(crate) struct DecidedByCell {
    /// How long the call has to wait.
    pub(crate) wait: Wait,
    /// How long a next call of cost 1 has to wait.
    pub(crate) plain: Wait,
    pub(crate) expires_us: u64,
}

impl DecidedByCell {
    /// Adds what another rule says about a next call, and when it expires.
    pub(crate) fn include(&mut self, plain: Wait, expires_us: u64) {
        self.plain = self.plain.max(plain);
        self.expires_us = self.expires_us.max(expires_us);
    }
}

/// The memory of one rule: three integers, like its cell in Redis, and one more.
///
/// | algorithm | `stamp_us` | `amount` | `other` |
/// | --- | --- | --- | --- |
/// | sliding counter | start of the slot | its weight | weight of the slot before |
/// | fixed window | when it opened | its weight | 1 if only a remnant is known |
/// | cron | last hit | weight since the last tick | the tick to come |
/// | token bucket | last hit | level, in tokens · per | when it is unused again |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(super) stamp_us: u64,
    pub(super) amount: u64,
    pub(super) other: u64,
    /// The time since which hits count in the level of a token bucket. Before, the bucket was full or unused.
    pub(super) since_us: u64,
}

impl Cell {
    /// Returns the time of the last hit, or what the algorithm keeps in place of it.
    pub(crate) fn latest_us(self) -> u64 {
        self.stamp_us
    }

    pub(crate) fn is_after(self, now_us: u64) -> bool {
        self.stamp_us > now_us
    }
}

/// A span of time by the clock of the store, in microseconds since 1970. Both ends are included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) from_us: u64,
    pub(crate) until_us: u64,
}

impl Span {
    pub(super) fn us(self) -> u64 {
        self.until_us.saturating_sub(self.from_us)
    }

    /// Returns the number of whole windows of that length.
    pub(super) fn windows(self, per_us: u64) -> u64 {
        self.us() / per_us.max(1)
    }
}

/// The remaining quota of a rule at the time of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    /// The greatest cost that the rule admits now.
    pub(crate) remaining: u64,
    /// The time until the rule is as if it had never counted.
    pub(crate) reset: Duration,
    /// If nothing is left, the time until something is; `None` for ever.
    pub(crate) used_up_for: Option<Duration>,
}

impl Quota {
    pub(crate) fn new(remaining: u64, reset_us: u64) -> Self {
        Self { remaining, reset: Duration::from_micros(reset_us), used_up_for: None }
    }

    /// Adds how long a call of cost 1 has to wait.
    pub(crate) fn with_wait(self, wait: Wait) -> Self {
        Self { used_up_for: wait.retry_after().filter(|_| self.remaining == 0), ..self }
    }
}

/// A change of a call's cost, from the charged to the used one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CostChange {
    pub(crate) charged: u64,
    pub(crate) used: u64,
}

impl CostChange {
    /// Corrects a sum that has counted the call, to at most `most`.
    pub(crate) fn corrected(self, sum: u64, most: u64) -> u64 {
        sum.saturating_sub(self.given_back()).saturating_add(self.beyond()).min(most)
    }

    pub(crate) fn given_back(self) -> u64 {
        self.charged.saturating_sub(self.used)
    }

    pub(crate) fn beyond(self) -> u64 {
        self.used.saturating_sub(self.charged)
    }

    /// Returns the change for a rule that counts at most `most` of any call.
    pub(crate) fn at_most(self, most: u64) -> Self {
        Self { charged: self.charged.min(most), used: self.used.min(most) }
    }
}

/// Adds the first fields of every rule.
#[cfg(feature = "redis")]
pub(super) fn pack_rule(packed: &mut Vec<u8>, kind: u8, count: u64, span: u64) {
    packed.push(kind);
    pack_integer(packed, count);
    pack_integer(packed, span);
}

/// Adds seven bytes, big endian. Validated numbers are below 2^53.
#[cfg(feature = "redis")]
pub(crate) fn pack_integer(packed: &mut Vec<u8>, number: u64) {
    packed.extend(&number.to_be_bytes()[8 - tallygate_lua::INTEGER_BYTES..]);
}
