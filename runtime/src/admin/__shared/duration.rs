//! Durations, as operators write them.

use std::time::Duration;

use tallygate_rules::{duration_meant, parse_duration};

/// Reads a duration.
///
/// # Errors
///
/// What is wrong with the text, and what was probably meant.
pub fn read_duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|mistake| match duration_meant(text) {
        Some(meant) => format!("the duration `{text}` cannot be read; did you mean `{meant}`?"),
        None => format!("the duration {mistake}"),
    })
}
