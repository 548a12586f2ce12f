//! What one rule remembers.

/// What one rule remembers.
///
/// | algorithm | `stamp_us` | `amount` | `other` |
/// | --- | --- | --- | --- |
/// | sliding counter | start of the slot | its weight | weight of the slot before |
/// | fixed window | when it opened | its weight | – |
/// | cron | last hit | weight since the last tick | the tick to come |
/// | token bucket | last hit | level, in tokens · per | when it is unused again |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store::memory) struct Cell {
    pub(super) stamp_us: u64,
    pub(super) amount: u64,
    pub(super) other: u64,
    /// Since when hits count in the level of a token bucket: before, it was full or unused.
    pub(super) since_us: u64,
}

impl Cell {
    /// The time of the last hit, or what the algorithm keeps in place of it.
    pub(in crate::store::memory) fn latest_us(self) -> u64 {
        self.stamp_us
    }

    pub(in crate::store::memory) fn is_after(self, now_us: u64) -> bool {
        self.stamp_us > now_us
    }
}
