//! An entry of a log.

/// An admitted call, or several that share their time: twelve bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LogEntry {
    /// A `u64` as bytes, as it would be aligned to eight of them.
    at_us: [u8; 8],
    /// The sum of the weights before it. So what it weighs itself is the difference to that of the next entry.
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
