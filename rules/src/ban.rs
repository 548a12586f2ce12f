//! Bans: what becomes of a subject that goes on being denied.

use std::time::Duration;

use crate::validate::{Mistake, check_duration};
use crate::{Field, RuleError};

/// The most denials that a ban may wait for; their times are remembered.
pub const MAX_DENIALS: u64 = 1_000;

/// After `denials` denials in any window of length `within`, the subject is banned for `duration`.
///
/// During a ban every call is rejected. None of them is charged, and none counts as a denial. After the ban, denials are
/// counted anew.
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
    /// Bans for `duration` after `denials` denials in any window of length `within`.
    #[must_use]
    pub const fn new(denials: u64, within: Duration, duration: Duration) -> Self {
        Self { denials, within, duration }
    }

    /// Returns the number of denials that lead to a ban.
    #[must_use]
    pub const fn denials(&self) -> u64 {
        self.denials
    }

    /// Returns the length of the window in which denials add up.
    #[must_use]
    pub const fn within(&self) -> Duration {
        self.within
    }

    /// Returns how long a ban lasts.
    #[must_use]
    pub const fn duration(&self) -> Duration {
        self.duration
    }

    /// Finds every mistake in the ban.
    ///
    /// # Errors
    ///
    /// Returns all the mistakes; their fields tell the part that is mistaken.
    pub fn validate(&self) -> Result<(), Vec<RuleError>> {
        let mistakes = [
            self.check_denials(),
            check_duration(Field::Within, "within", self.within),
            check_duration(Field::Duration, "duration", self.duration),
        ];
        let errors: Vec<_> = mistakes.into_iter().flatten().map(Mistake::of_the_policy).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    fn check_denials(&self) -> Option<Mistake> {
        let message = match self.denials {
            0 => "`denials` must be at least 1, like `denials = 20`".to_owned(),
            1..=MAX_DENIALS => return None,
            _ => format!("`denials` is at most {MAX_DENIALS}, as the time of each is remembered"),
        };
        Some(Mistake::of(Field::Denials, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_ban_is_checked_in_every_part() {
        let errors = Ban::new(0, Duration::ZERO, Duration::from_nanos(1)).validate().unwrap_err();
        let fields: Vec<_> = errors.iter().map(RuleError::field).collect();
        assert_eq!(fields, [Field::Denials, Field::Within, Field::Duration]);
        assert!(Ban::new(MAX_DENIALS + 1, MINUTE, MINUTE).validate().unwrap_err()[0].to_string().contains("1000"));
        assert_eq!(Ban::new(MAX_DENIALS, MINUTE, MINUTE).validate(), Ok(()));
    }
}
