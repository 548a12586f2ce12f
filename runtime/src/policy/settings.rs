//! The settings of a policy.

use std::time::Duration;

use tallygate_rules::OnOutage;

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
