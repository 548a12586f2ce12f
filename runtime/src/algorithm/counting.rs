//! What an algorithm answers, and what it is asked.

#[cfg(feature = "redis")]
use std::sync::Arc;
use std::time::Duration;

use crate::wait::Wait;

/// A rule in the numbers of its algorithm. Times are in microseconds.
pub(crate) trait Counting {
    /// What a tally keeps for it.
    fn kept(&self) -> Kept<'_>;

    /// How long a hit counts, ticks aside.
    fn memory_us(&self) -> u64;

    /// Whether what it has counted fades, so that calls may be made later than they were counted.
    fn slides(&self) -> bool;

    /// Returns the most that it admits within that time, both ends included; `None` if there is no bound. `room` is the room
    /// at the beginning, if it is known.
    fn most_admitted(&self, within: Span, room: Option<u64>) -> Option<u64>;

    /// Adds its fields, in the order that the header of `decide.lua` gives.
    #[cfg(feature = "redis")]
    fn pack(&self, packed: &mut Vec<u8>, ticks: &mut TickLists<'_>);

    /// Estimates what it adds to the work of the server beside what every rule does, in nanoseconds.
    #[cfg(feature = "redis")]
    fn work_ns(&self, _is_reported: bool) -> u32 {
        0
    }
}

/// The ticks of each rule that follows a schedule, in the order of the rules.
#[cfg(feature = "redis")]
pub(crate) type TickLists<'a> = std::slice::Iter<'a, Arc<[u64]>>;

/// What a tally keeps for a rule.
pub(crate) enum Kept<'a> {
    /// The calls that it admitted, in the log of all sliding windows.
    Log(Window),
    /// A cell of its own.
    Cell(&'a dyn Celled),
    /// The leases of the calls that are running.
    Leases,
}

/// A sliding window in numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// The place of its rule among those of the group.
    pub(crate) place: usize,
    pub(crate) count: u64,
    pub(crate) per_us: u64,
    /// Whether it is against duplicates: every call weighs 1, whatever its cost.
    pub(crate) is_duplicate: bool,
}

/// A rule that keeps a cell. Every cell but that which [`Self::at`] takes is one of now.
pub(crate) trait Celled {
    /// Identifies the meaning of the cell in the layout of a tally. The count is not part of it, so it may change and keep the
    /// tally.
    fn tag(&self) -> String;

    /// Returns the cell as it is at that time: windows that are over are empty, tokens have flowed in.
    fn at(&self, cell: Cell, now_us: u64) -> Cell;

    /// Returns how long a call has to wait.
    fn wait(&self, cell: Cell, cost: u64, now_us: u64) -> Wait;

    /// Returns after what time a call, even if it fits until then, never fits again.
    fn lapse(&self, _cell: Cell, _cost: u64, _now_us: u64) -> Option<Wait> {
        None
    }

    /// Returns the cell with a call counted.
    fn charged(&self, cell: Cell, cost: u64, _now_us: u64) -> Cell {
        Cell { amount: cell.amount + cost, ..cell }
    }

    /// Returns the stored cell with what a call has used that was admitted then, where that still counts.
    fn refunded(&self, cell: Cell, costs: CostChange, admitted_us: u64, now_us: u64) -> Cell;

    /// Returns what is left.
    fn quota(&self, cell: Cell, now_us: u64) -> Quota;

    /// Returns when a cell that was charged counts no more.
    fn expires_us(&self, cell: Cell) -> u64;

    /// Returns how long a call has to wait by the stored cell, and after what time it never fits again.
    fn ask(&self, cell: Cell, cost: u64, now_us: u64) -> (Wait, Option<Wait>) {
        let cell = self.at(cell, now_us);
        (self.wait(cell, cost, now_us), self.lapse(cell, cost, now_us))
    }

    /// Counts a call in the stored cell, and returns how long one of cost 1 has to wait then.
    fn charge(&self, cell: &mut Cell, cost: u64, now_us: u64) -> Wait {
        *cell = self.charged(self.at(*cell, now_us), cost, now_us);
        self.wait(*cell, 1, now_us)
    }
}

/// What one rule remembers: three integers, like its cell in Redis, and one more.
///
/// | algorithm | `stamp_us` | `amount` | `other` |
/// | --- | --- | --- | --- |
/// | sliding counter | start of the slot | its weight | weight of the slot before |
/// | fixed window | when it opened | its weight | – |
/// | cron | last hit | weight since the last tick | the tick to come |
/// | token bucket | last hit | level, in tokens · per | when it is unused again |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(super) stamp_us: u64,
    pub(super) amount: u64,
    pub(super) other: u64,
    /// Since when hits count in the level of a token bucket: before, it was full or unused.
    pub(super) since_us: u64,
}

impl Cell {
    /// The time of the last hit, or what the algorithm keeps in place of it.
    pub(crate) fn latest_us(self) -> u64 {
        self.stamp_us
    }

    pub(crate) fn is_after(self, now_us: u64) -> bool {
        self.stamp_us > now_us
    }
}

/// A time by the clock of the store, in microseconds since 1970, both ends included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) from_us: u64,
    pub(crate) until_us: u64,
}

impl Span {
    pub(super) fn us(self) -> u64 {
        self.until_us.saturating_sub(self.from_us)
    }

    /// How many whole windows of that length it has.
    pub(super) fn windows(self, per_us: u64) -> u64 {
        self.us() / per_us.max(1)
    }
}

/// The rest of a rule at the time of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    /// The greatest cost that would be admitted now.
    pub(crate) remaining: u64,
    /// The time until the rule is as if it had never counted.
    pub(crate) reset: Duration,
}

impl Quota {
    pub(crate) fn new(remaining: u64, reset_us: u64) -> Self {
        Self { remaining, reset: Duration::from_micros(reset_us) }
    }
}

/// The cost of a call: what it was, and what it is from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CostChange {
    pub(crate) charged: u64,
    pub(crate) used: u64,
}

impl CostChange {
    /// Returns what a sum that has counted the call is from now on: no more than `most`.
    pub(crate) fn corrected(self, sum: u64, most: u64) -> u64 {
        sum.saturating_sub(self.given_back()).saturating_add(self.beyond()).min(most)
    }

    /// Returns the part of the charge that is given back.
    pub(crate) fn given_back(self) -> u64 {
        self.charged.saturating_sub(self.used)
    }

    /// Returns what was used beyond the charge.
    pub(crate) fn beyond(self) -> u64 {
        self.used.saturating_sub(self.charged)
    }

    /// Returns the same where no call counts more than that.
    pub(crate) fn at_most(self, most: u64) -> Self {
        Self { charged: self.charged.min(most), used: self.used.min(most) }
    }
}

/// Adds what the fields of every rule begin with.
#[cfg(feature = "redis")]
pub(super) fn pack_rule(packed: &mut Vec<u8>, kind: u8, count: u64, span: u64) {
    packed.push(kind);
    pack_integer(packed, count);
    pack_integer(packed, span);
}

/// Seven bytes, big endian. Numbers are validated to be below 2^53.
#[cfg(feature = "redis")]
pub(crate) fn pack_integer(packed: &mut Vec<u8>, number: u64) {
    packed.extend(&number.to_be_bytes()[8 - tallygate_lua::INTEGER_BYTES..]);
}
