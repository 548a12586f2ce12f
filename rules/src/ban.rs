//! Bans of subjects that continue to be denied.

use std::time::Duration;

/// After `denials` denials in any window of length `within`, the subject is banned for `duration`.
///
/// During a ban, every call is rejected. None of them is charged, and none counts as a denial. After the ban, denials
/// are counted from zero.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tallygate_rules::Ban;
///
/// let ban = Ban::new(20, Duration::from_secs(600), Duration::from_secs(3_600));
/// assert_eq!(ban.denials(), 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ban {
    denials: u64,
    within: Duration,
    duration: Duration,
}

impl Ban {
    /// Returns a ban for `duration` after `denials` denials in any window of length `within`.
    ///
    /// This checks nothing: [`validate_ban`](crate::validate_ban) does.
    #[must_use]
    pub const fn new(denials: u64, within: Duration, duration: Duration) -> Self {
        Self { denials, within, duration }
    }

    /// Returns the number of denials that lead to a ban.
    #[must_use]
    pub const fn denials(&self) -> u64 {
        self.denials
    }

    /// Returns the length of the window in which denials are counted.
    #[must_use]
    pub const fn within(&self) -> Duration {
        self.within
    }

    /// Returns the length of a ban.
    #[must_use]
    pub const fn duration(&self) -> Duration {
        self.duration
    }
}
