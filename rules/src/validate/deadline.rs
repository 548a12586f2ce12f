//! The check of a policy's deadline.

use std::time::Duration;

use crate::error::{Field, RuleError, RuleMistake};
use crate::limits::MAX_DEADLINE;

/// Finds the mistake in a deadline: the longest time that a decision takes.
///
/// # Errors
///
/// It is zero, or longer than [`MAX_DEADLINE`].
pub fn validate_deadline(deadline: Duration) -> Result<(), RuleError> {
    let mistake = match deadline {
        Duration::ZERO => "must be longer than zero",
        deadline if deadline > MAX_DEADLINE => "is at most an hour",
        _ => return Ok(()),
    };
    Err(RuleMistake::new(Field::Deadline, format!("`deadline` {mistake}, like `deadline = \"50ms\"`")).in_policy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_longer_than_zero_and_at_most_an_hour() {
        let nanosecond = Duration::from_nanos(1);
        assert!(validate_deadline(nanosecond).is_ok() && validate_deadline(MAX_DEADLINE).is_ok());
        let error = validate_deadline(Duration::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "`deadline` must be longer than zero, like `deadline = \"50ms\"`");
        assert_eq!((error.field(), error.position()), (Field::Deadline, None));
        let error = validate_deadline(MAX_DEADLINE + nanosecond).unwrap_err();
        assert_eq!(error.to_string(), "`deadline` is at most an hour, like `deadline = \"50ms\"`");
    }
}
