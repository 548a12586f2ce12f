//! The entries of a log, oldest first, and until when the log denies calls.

use arrayvec::ArrayVec;

use crate::algorithm::Window;
use crate::decision::Wait;

/// How many entries are stored in the tally itself, so that a decision reads no other memory.
const FEW: usize = 2;

/// The capacity of the first allocation.
const MANY: usize = 8;

/// The capacity that is never given back.
const KEPT: usize = 64;

/// An admitted call, or several that share their time, in twelve bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LogEntry {
    /// A `u64` as bytes: as a number, it would be aligned to eight bytes.
    at_us: [u8; 8],
    /// The sum of the weights before this entry. The difference to that of the next entry is what it weighs.
    before: u32,
}

impl LogEntry {
    #[inline]
    pub(super) fn new(at_us: u64, before: u32) -> Self {
        Self { at_us: at_us.to_ne_bytes(), before }
    }

    #[inline]
    pub(super) fn at_us(&self) -> u64 {
        u64::from_ne_bytes(self.at_us)
    }

    #[inline]
    pub(super) fn before(&self) -> u32 {
        self.before
    }
}

/// Entries that are added at the end and removed from the front, several at once.
#[derive(Debug)]
pub(super) enum LogEntries {
    Few(ArrayVec<LogEntry, FEW>),
    Many(Vec<LogEntry>),
}

impl Default for LogEntries {
    fn default() -> Self {
        Self::Few(ArrayVec::new())
    }
}

impl LogEntries {
    #[inline]
    pub(super) fn as_slice(&self) -> &[LogEntry] {
        match self {
            Self::Few(entries) => entries,
            Self::Many(entries) => entries,
        }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [LogEntry] {
        match self {
            Self::Few(entries) => entries,
            Self::Many(entries) => entries,
        }
    }

    /// Whether one more entry needs an allocation.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Few(entries) => entries.is_full(),
            Self::Many(entries) => entries.len() == entries.capacity(),
        }
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a call of a function would take longer than what it does")]
    pub(super) fn push(&mut self, entry: LogEntry) {
        match self {
            Self::Few(entries) if !entries.is_full() => entries.push(entry),
            Self::Few(_) => self.become_many(entry),
            Self::Many(entries) => entries.push(entry),
        }
    }

    pub(super) fn pop(&mut self) -> Option<LogEntry> {
        match self {
            Self::Few(entries) => entries.pop(),
            Self::Many(entries) => entries.pop(),
        }
    }

    pub(super) fn remove_first(&mut self, count: usize) {
        match self {
            Self::Few(entries) => drop(entries.drain(..count.min(entries.len()))),
            Self::Many(entries) => drop(entries.drain(..count.min(entries.len()))),
        }
    }

    /// Makes room for as many entries again, and gives back capacity of which little is used.
    pub(super) fn make_room(&mut self) {
        if let Self::Many(entries) = self {
            entries.shrink_to(KEPT.max(8 * entries.len()));
            entries.reserve(entries.len());
        }
    }

    #[cold]
    fn become_many(&mut self, entry: LogEntry) {
        let mut entries = Vec::with_capacity(MANY);
        entries.extend_from_slice(self.as_slice());
        entries.push(entry);
        *self = Self::Many(entries);
    }
}

/// Until when calls of cost 1 are denied, as the last call found out, in twelve bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeniedUntil {
    /// A `u64` as bytes: as a number, it would be aligned to eight bytes.
    us: [u8; 8],
    /// The count of the window that denies calls, if it is the only rule; else 0.
    count: u32,
}

impl DeniedUntil {
    /// Notes how long a call of cost 1 has to wait. `only` is the window if there is no other rule.
    #[inline]
    pub(super) fn new(wait: Wait, only: Option<&Window>, now_us: u64) -> Self {
        // A wait that never ends has no time. Whether a call is a duplicate depends on the last call, refunded or not.
        let only = only.filter(|window| !window.is_duplicate && !wait.is_none() && wait != Wait::NEVER);
        let count = only.and_then(|window| u32::try_from(window.count).ok()).unwrap_or_default();
        Self { us: wait.ends_us(now_us).to_ne_bytes(), count }
    }

    #[inline]
    pub(super) fn us(&self) -> u64 {
        u64::from_ne_bytes(self.us)
    }

    /// How long a call of cost 1 has to wait, if that was noted for a window of this count.
    #[inline]
    pub(super) fn wait(&self, window: &Window, now_us: u64) -> Option<Wait> {
        let wait = Wait::until(self.us(), now_us);
        (self.count > 0 && u64::from(self.count) == window.count && !wait.is_none()).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    fn numbers(entries: &[LogEntry]) -> Vec<u32> {
        entries.iter().map(LogEntry::before).collect()
    }

    #[test]
    fn entries_come_and_leave_like_those_of_a_queue() {
        let mut random = fastrand::Rng::with_seed(7);
        let (mut entries, mut queue) = (LogEntries::default(), VecDeque::new());
        for number in 0..100_000 {
            // Now and then the queue grows to hundreds, and becomes empty.
            let growing = number / 500 % 2 == 0;
            match random.u8(0..8) {
                0 => assert_eq!(entries.pop().map(|entry| entry.before()), queue.pop_back()),
                1..4 if growing => {}
                1..8 if !growing || queue.len() > 600 => {
                    let count = random.usize(0..4).min(queue.len());
                    entries.remove_first(count);
                    queue.drain(..count);
                }
                _ => {
                    entries.push(LogEntry::new(0, number));
                    queue.push_back(number);
                }
            }
            assert_eq!(entries.as_slice().len(), queue.len());
            if number % 97 == 0 {
                assert_eq!(queue, numbers(entries.as_slice()));
                assert_eq!(queue, numbers(entries.as_mut_slice()));
            }
        }
    }

    #[test]
    fn few_entries_take_as_much_room_as_the_pointers_to_many() {
        assert_eq!((size_of::<LogEntry>(), size_of::<LogEntries>()), (12, 32));
    }
}
