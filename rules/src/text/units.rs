//! Durations as people write them, for suggestions: `1 h`, `hour`, `1h30m`, `1.5h`, `1w`.

use std::time::Duration;

const SECOND_US: u64 = 1_000_000;
const DAY_US: u64 = 86_400 * SECOND_US;

/// The spellings of each unit, with its length in microseconds.
const SPELLINGS: [(&[&str], u64); 9] = [
    (&["us", "µs", "usec", "usecs", "microsecond", "microseconds"], 1),
    (&["ms", "msec", "msecs", "milli", "millis", "millisecond", "milliseconds"], 1_000),
    (&["s", "sec", "secs", "second", "seconds"], SECOND_US),
    (&["m", "min", "mins", "minute", "minutes"], 60 * SECOND_US),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600 * SECOND_US),
    (&["d", "day", "days"], DAY_US),
    (&["w", "wk", "wks", "week", "weeks"], 7 * DAY_US),
    (&["mo", "mon", "month", "months"], 30 * DAY_US),
    (&["y", "yr", "yrs", "year", "years"], 365 * DAY_US),
];

/// Reads as many of the words as form a duration, and returns it with their number.
pub(super) fn read_duration(words: &[String]) -> Option<(Duration, usize)> {
    let mut sum_us: u64 = 0;
    let mut number: Option<&str> = None;
    let mut shortest_us = u64::MAX;
    let mut read = None;
    for (index, word) in words.iter().enumerate() {
        for part in parts(word) {
            if part.starts_with(|first: char| first.is_ascii_digit()) {
                if number.replace(part).is_some() {
                    return read;
                }
                continue;
            }
            // The parts of a sum get shorter. Only the first may lack its number, as in `hour`.
            let number = number.take().or(read.is_none().then_some("1"));
            let unit_us = unit_us(part).filter(|&unit_us| unit_us < shortest_us);
            let (Some(number), Some(unit_us)) = (number, unit_us) else { return read };
            shortest_us = unit_us;
            sum_us = sum_us.checked_add(length_us(number, unit_us)?)?;
        }
        if number.is_none() && sum_us > 0 {
            read = Some((Duration::from_micros(sum_us), index + 1));
        }
    }
    read
}

/// Splits `1h30m` into `1`, `h`, `30` and `m`.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let is_numeric = |character: char| character.is_ascii_digit() || character == '.';
    let mut rest = word;
    std::iter::from_fn(move || {
        let numeric = is_numeric(rest.chars().next()?);
        let end = rest.find(|character| is_numeric(character) != numeric).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        rest = behind;
        Some(part)
    })
}

fn unit_us(name: &str) -> Option<u64> {
    SPELLINGS.iter().find(|(spellings, _)| spellings.contains(&name)).map(|&(_, unit_us)| unit_us)
}

/// Returns the length of so many units, if it is a whole number of microseconds.
fn length_us(number: &str, unit_us: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole_us = whole.parse::<u64>().ok()?.checked_mul(unit_us)?;
    if fraction.is_empty() {
        return Some(whole_us);
    }
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let scaled_us = fraction.parse::<u64>().ok()?.checked_mul(unit_us)?;
    scaled_us.is_multiple_of(scale).then(|| whole_us.checked_add(scaled_us / scale))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(Duration, usize)> {
        let words: Vec<_> = text.split(' ').map(str::to_owned).collect();
        read_duration(&words)
    }

    #[test]
    fn every_usual_spelling_is_read() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        for (text, duration, words) in [
            ("1h", minutes(60), 1),
            ("1 h", minutes(60), 2),
            ("hour", minutes(60), 1),
            ("2 hours burst 5", minutes(120), 2),
            ("1h30m", minutes(90), 1),
            ("1 h 30 min", minutes(90), 4),
            ("1.5h", minutes(90), 1),
            ("1w", minutes(7 * 24 * 60), 1),
            ("1h initial 3", minutes(60), 1),
            ("1h 1h", minutes(60), 1),
            ("hour 5", minutes(60), 1),
        ] {
            assert_eq!(read(text), Some((duration, words)), "{text}");
        }
    }

    #[test]
    fn other_words_are_no_duration() {
        for text in ["", "5", "burst", "1x", "1.0000001s", "99999999999999999999h"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
