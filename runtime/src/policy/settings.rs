//! The settings of a policy, and what follows from that of `prefetch`.

use std::time::Duration;

use tallygate_rules::OnOutage;

use crate::micros;

/// The settings of a policy beside its rules. The limiter sets `on_outage` and `deadline` if the policy does not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PolicySettings {
    pub(crate) on_outage: Option<OnOutage>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) warn_at: Option<f64>,
    pub(crate) prefetch: Option<Duration>,
    /// Whether each call asks Redis in spite of `prefetch`. The windows stay those of `prefetch`.
    pub(crate) takes_nothing_ahead: bool,
    /// Whether calls run even if they are denied. `None` leaves that to the call.
    pub(crate) shadow: Option<bool>,
    /// The longest pause of a subject; `None` if subjects cannot be paused.
    pub(crate) longest_pause: Option<Duration>,
}

/// The longest pause of a subject, unless the policy has another.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

impl PolicySettings {
    /// The settings of a policy that says nothing of them.
    pub(crate) const NONE: Self = Self {
        on_outage: None,
        deadline: None,
        warn_at: None,
        prefetch: None,
        takes_nothing_ahead: false,
        shadow: None,
        longest_pause: None,
    };

    /// Lets a subject be paused, for the usual time at most unless there is another already.
    pub(crate) const fn pausable(mut self) -> Self {
        if self.longest_pause.is_none() {
            self.longest_pause = Some(LONGEST_PAUSE);
        }
        self
    }
}

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
