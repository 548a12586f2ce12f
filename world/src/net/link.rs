//! What happens to packets between two parties.

use crate::engine::Chance;

/// How long a system waits until it sends a lost packet again.
const AGAIN_US: u64 = 200_000;

/// The state of a link.
#[derive(Clone, Debug)]
pub struct Link {
    /// The least time that a packet takes.
    pub delay_us: u64,
    /// How much longer it may take.
    pub jitter_us: u64,
    /// The share of packets that are lost, and arrive when they are sent again.
    pub loss: f64,
    /// Nothing arrives, and no side sees an error.
    pub is_silent: bool,
    /// Attempts to connect fail.
    pub is_unreachable: bool,
    /// The share of requests before which the stream is cut.
    pub cut_requests: f64,
    /// The share of replies before which the stream is cut, when the request was executed.
    pub cut_replies: f64,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            delay_us: 50,
            jitter_us: 30,
            loss: 0.0,
            is_silent: false,
            is_unreachable: false,
            cut_requests: 0.0,
            cut_replies: 0.0,
        }
    }
}

impl Link {
    pub(super) fn delay(&self, chance: &mut Chance) -> u64 {
        let jitter_us = if self.jitter_us > 0 { chance.between(0, self.jitter_us) } else { 0 };
        let lost_us = if chance.happens(self.loss) { chance.between(AGAIN_US, 4 * AGAIN_US) } else { 0 };
        self.delay_us + jitter_us + lost_us
    }
}
