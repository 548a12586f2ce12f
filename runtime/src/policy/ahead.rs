//! How long calls are taken ahead.

use std::time::Duration;

use crate::micros;

/// The shortest time by which a part ends early.
const LEAST_MARGIN_US: u64 = 2_000;

/// How long calls are taken ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ahead {
    pub(crate) us: u64,
    /// The time by which a part ends early, because no two clocks run alike and a server's clock may go back a little.
    pub(crate) margin_us: u64,
}

impl Ahead {
    pub(crate) fn new(ahead: Duration) -> Self {
        let us = micros::from_duration(ahead);
        Self { us, margin_us: LEAST_MARGIN_US.max(us / 100) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_grows_with_the_time() {
        let margin_us = |ms| Ahead::new(Duration::from_millis(ms)).margin_us;
        assert_eq!([10, 100, 5_000].map(margin_us), [2_000, 2_000, 50_000]);
    }
}
