//! The grammar of durations: a whole number and one unit.

use std::fmt;
use std::time::Duration;

/// The units with their lengths in microseconds, longest first.
const UNITS: [(&str, u64); 6] =
    [("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1)];

/// The reason why a text is not a duration.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DurationError {
    /// The text is empty or white space.
    Empty,
    /// The text does not start with a whole number.
    NoNumber,
    /// No unit follows the number.
    NoUnit,
    /// The text after the number is not a unit.
    UnknownUnit(String),
    /// The number of microseconds does not fit into 64 bits.
    TooLong,
}

impl DurationError {
    /// Returns the fault without the remedy.
    pub(crate) fn fault(&self) -> String {
        match self {
            Self::Empty => "is empty".to_owned(),
            Self::NoNumber => "does not start with a whole number".to_owned(),
            Self::NoUnit => "has no unit".to_owned(),
            Self::UnknownUnit(unit) => format!("has the unknown unit `{}`", unit.trim()),
            Self::TooLong => "is too long".to_owned(),
        }
    }
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = self.fault();
        write!(f, "{fault}; write a whole number and one of `ms`, `s`, `m`, `h`, `d`, like \"60s\"")
    }
}

impl std::error::Error for DurationError {}

crate::__debug_by_display!(DurationError);

/// Reads a duration: a whole number followed by `us`, `ms`, `s`, `m`, `h` or `d` (days of 24 hours).
///
/// The grammar has no fractions, no sums, no months and no white space on purpose.
///
/// # Errors
///
/// Returns a [`DurationError`] for any other text.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// assert_eq!(tallygate_rules::parse_duration("90s"), Ok(Duration::from_secs(90)));
/// assert!(tallygate_rules::parse_duration("1.5h").is_err());
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    if text.trim().is_empty() {
        return Err(DurationError::Empty);
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(DurationError::NoNumber);
    }
    if unit.is_empty() {
        return Err(DurationError::NoUnit);
    }
    let unit_us = UNITS
        .iter()
        .find_map(|&(name, us)| (name == unit).then_some(us))
        .ok_or_else(|| DurationError::UnknownUnit(unit.to_owned()))?;
    let number: u64 = number.parse().map_err(|_| DurationError::TooLong)?;
    number.checked_mul(unit_us).map(Duration::from_micros).ok_or(DurationError::TooLong)
}

/// Writes a duration in the longest unit that is exact.
///
/// [`parse_duration`] reads it back, except for a fraction of a microsecond, written in `ns`, and for more microseconds
/// than fit into 64 bits, written in `s`. No rule that passes [`validate`](crate::validate()) has one of these.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// assert_eq!(tallygate_rules::format_duration(Duration::from_secs(7200)), "2h");
/// assert_eq!(tallygate_rules::format_duration(Duration::from_millis(1500)), "1500ms");
/// ```
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let Ok(us) = u64::try_from(duration.as_micros()) else {
        return format!("{}s", duration.as_secs());
    };
    if !duration.subsec_nanos().is_multiple_of(1_000) {
        return format!("{}ns", duration.as_nanos());
    }
    let exact = UNITS.iter().find(|&&(_, unit_us)| us >= unit_us && us.is_multiple_of(unit_us));
    exact.map_or_else(|| "0s".to_owned(), |(name, unit_us)| format!("{}{name}", us / unit_us))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whole_microseconds_are_read_back_as_they_were_written(us: u64) {
            let duration = Duration::from_micros(us);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }
    }

    #[test]
    fn every_unit_is_read_and_written() {
        for text in ["1us", "1ms", "1500ms", "1s", "59s", "1m", "61m", "1h", "25h", "1d", "365d"] {
            assert_eq!(format_duration(parse_duration(text).unwrap()), text);
        }
    }

    #[test]
    fn equal_lengths_are_written_in_the_longest_exact_unit() {
        assert_eq!(format_duration(parse_duration("24h").unwrap()), "1d");
        assert_eq!(format_duration(Duration::from_micros(7)), "7us");
        assert_eq!(format_duration(Duration::from_nanos(1_001)), "1001ns");
        assert_eq!(format_duration(Duration::ZERO), "0s");
        assert_eq!(format_duration(Duration::MAX), "18446744073709551615s");
    }

    #[test]
    fn each_other_text_has_its_own_error() {
        assert_eq!(parse_duration(""), Err(DurationError::Empty));
        assert_eq!(parse_duration("s"), Err(DurationError::NoNumber));
        assert_eq!(parse_duration("-5s"), Err(DurationError::NoNumber));
        assert_eq!(parse_duration(" 5s"), Err(DurationError::NoNumber));
        assert_eq!(parse_duration("60"), Err(DurationError::NoUnit));
        assert_eq!(parse_duration("1.5h"), Err(DurationError::UnknownUnit(".5h".into())));
        assert_eq!(parse_duration("1M"), Err(DurationError::UnknownUnit("M".into())));
        assert_eq!(parse_duration("1h30m"), Err(DurationError::UnknownUnit("h30m".into())));
        assert_eq!(parse_duration("99999999999999999999s"), Err(DurationError::TooLong));
        assert_eq!(parse_duration("18446744073709551615d"), Err(DurationError::TooLong));
    }
}
