//! Until when the next calls are denied, as the last call found out.

use crate::decision::Wait;
use crate::policy::Window;

/// Until when calls of cost 1 are denied, as the last call found out: twelve bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeniedUntil {
    /// A `u64` as bytes, as it would be aligned to eight of them.
    us: [u8; 8],
    /// The count of the window that denies them, if it is the only rule; else 0.
    count: u32,
}

impl DeniedUntil {
    /// What is known from the wait of such a call, and from the window if there is no other rule.
    #[inline]
    pub(super) fn new(wait: Wait, only: Option<&Window>, now_us: u64) -> Self {
        // One that never ends has no time, and duplicates go by the last call, be it refunded or not.
        let only = only.filter(|window| !window.is_duplicate && !wait.is_none() && wait != Wait::NEVER);
        let count = only.and_then(|window| u32::try_from(window.count).ok()).unwrap_or_default();
        Self { us: wait.ends_us(now_us).to_ne_bytes(), count }
    }

    #[inline]
    pub(super) fn us(&self) -> u64 {
        u64::from_ne_bytes(self.us)
    }

    /// How long such a call has to wait, if that was found out for this very count of the window.
    #[inline]
    pub(super) fn wait(&self, window: &Window, now_us: u64) -> Option<Wait> {
        let wait = Wait::until(self.us(), now_us);
        (self.count > 0 && u64::from(self.count) == window.count && !wait.is_none()).then_some(wait)
    }
}
