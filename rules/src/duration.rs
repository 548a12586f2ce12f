//! The duration grammar: a whole number and one unit.

use std::fmt;
use std::time::Duration;

/// The units, longest first, with their length in microseconds.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000)];

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DurationError {
    /// There is no text at all.
    Empty,
    /// The text does not start with a whole number.
    NoNumber,
    /// The number is followed by no unit.
    NoUnit,
    /// The number is followed by something that is no unit.
    UnknownUnit(String),
    /// The number of microseconds does not fit into 64 bits.
    TooLong,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::NoNumber => f.write_str("does not start with a whole number"),
            Self::NoUnit => f.write_str("has no unit"),
            Self::UnknownUnit(unit) => write!(f, "has the unknown unit `{unit}`"),
            Self::TooLong => f.write_str("is too long"),
        }?;
        f.write_str("; write a whole number and one of `ms`, `s`, `m`, `h`, `d`, like \"60s\"")
    }
}

impl std::error::Error for DurationError {}

/// Reads a duration: a whole number followed by `ms`, `s`, `m`, `h` or `d` (days of 24 hours).
///
/// The grammar is small on purpose: no fractions, no sums, no months, no white space.
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
    if text.is_empty() {
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

/// Writes a duration the way [`parse_duration`] reads it, in the longest unit that is exact.
///
/// Durations of no whole number of milliseconds, which the grammar cannot say, are written in `us` or `ns`.
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
    UNITS
        .iter()
        .find(|&&(_, unit_us)| us >= unit_us && us % unit_us == 0)
        .map_or_else(|| format!("{us}us"), |(name, unit_us)| format!("{}{name}", us / unit_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read_and_written_back() {
        for text in ["1ms", "1500ms", "1s", "59s", "1m", "61m", "1h", "25h", "1d", "365d"] {
            let duration = parse_duration(text).unwrap();
            assert_eq!(format_duration(duration), text);
        }
    }

    #[test]
    fn equal_lengths_are_written_in_the_longest_exact_unit() {
        assert_eq!(format_duration(parse_duration("24h").unwrap()), "1d");
        assert_eq!(format_duration(Duration::from_micros(7)), "7us");
        assert_eq!(format_duration(Duration::from_nanos(1_001)), "1001ns");
    }

    #[test]
    fn anything_else_is_refused_by_its_own_name() {
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
