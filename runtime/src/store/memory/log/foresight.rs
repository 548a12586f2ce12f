//! What one call tells of the next ones.

use crate::decision::Wait;
use crate::policy::Window;

/// Until when calls of cost 1 are denied, as the last call found out: twelve bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Foresight {
    /// A `u64` as bytes, as it would be aligned to eight of them.
    denied_until_us: [u8; 8],
    /// The count of the window that denies them, if it is the only rule; else 0.
    count: u32,
}

impl Foresight {
    /// What is known from the wait of such a call, and from the window if there is no other rule.
    #[inline]
    pub(super) fn new(wait: Wait, only: Option<&Window>, now_us: u64) -> Self {
        // One that never ends has no time, and duplicates go by the last call, be it refunded or not.
        let only = only.filter(|window| !window.is_duplicate && !wait.is_none() && wait != Wait::NEVER);
        let count = only.and_then(|window| u32::try_from(window.count).ok()).unwrap_or_default();
        Self { denied_until_us: wait.ends_us(now_us).to_ne_bytes(), count }
    }

    #[inline]
    pub(super) fn denied_until_us(&self) -> u64 {
        u64::from_ne_bytes(self.denied_until_us)
    }

    /// How long such a call has to wait, if this was foreseen for the very count of the window.
    #[inline]
    pub(super) fn wait(&self, window: &Window, now_us: u64) -> Option<Wait> {
        let wait = Wait::until(self.denied_until_us(), now_us);
        (self.count > 0 && u64::from(self.count) == window.count && !wait.is_none()).then_some(wait)
    }
}
