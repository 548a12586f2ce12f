//! Times of a trace, as text.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Reads a time of RFC 3339, or seconds since 1970 with or without a fraction. Digits below a microsecond are cut off.
pub(super) fn parse(text: &str) -> Option<SystemTime> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let us = if is_number {
        epoch_us(text)?
    } else {
        u64::try_from(text.parse::<Timestamp>().ok()?.as_microsecond()).ok()?
    };
    UNIX_EPOCH.checked_add(Duration::from_micros(us))
}

/// Writes a time as RFC 3339.
pub(super) fn format(us: u64) -> String {
    let timestamp = i64::try_from(us).ok().and_then(|us| Timestamp::from_microsecond(us).ok());
    timestamp.map_or_else(|| format!("{us} µs after 1970"), |timestamp| timestamp.to_string())
}

fn epoch_us(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    // A number has only one point.
    if fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let us: u64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(us)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(text: &str) -> Option<u64> {
        parse(text).map(|at| crate::micros::from_duration(at.duration_since(UNIX_EPOCH).unwrap()))
    }

    #[test]
    fn a_time_is_rfc_3339_or_seconds_since_1970() {
        for (text, expected) in [
            ("1800000000", 1_800_000_000_000_000),
            ("1800000000.25", 1_800_000_000_250_000),
            ("1800000000.0000019", 1_800_000_000_000_001),
            ("2027-01-15T08:00:00Z", 1_800_000_000_000_000),
            ("2027-01-15T16:00:00.000001+08:00", 1_800_000_000_000_001),
            ("2027-01-15T08:00:00.0000009Z", 1_800_000_000_000_000),
        ] {
            assert_eq!(us(text), Some(expected), "{text}");
        }
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "1.2.3",
            "1e9",
            "-1",
            "noon",
            "2027-01-15",
            "2027-01-15T08:00:00",
            "1960-01-01T00:00:00Z",
        ] {
            assert_eq!(us(text), None, "{text}");
        }
        assert_eq!(us(&"9".repeat(30)), None);
    }

    #[test]
    fn a_time_is_written_as_it_can_be_read() {
        assert_eq!(format(1_800_000_000_250_000), "2027-01-15T08:00:00.25Z");
        assert_eq!(us(&format(1_800_000_000_250_001)), Some(1_800_000_000_250_001));
    }
}
