//! Suggests what the text of an argument was meant to be: a duration, as people write it, or a whole rule.

use std::time::Duration;

use crate::algorithm::{Algorithm, Role};
use crate::duration::{format_duration, parse_duration};
use crate::rule::Rule;
use crate::text::scan::is_number;

/// Words before a duration that do not change it.
const BEFORE: [&str; 6] = ["per", "every", "each", "a", "an", "in"];

/// Reads an argument that is a duration.
///
/// # Errors
///
/// Returns the mistake, and the argument that was probably meant.
///
/// # Examples
///
/// ```
/// let mistake = tallygate_rules::read_duration("per", "1 minute").unwrap_err();
/// assert!(mistake.ends_with("; did you mean `per = \"1m\"`?"), "{mistake}");
/// ```
pub fn read_duration(argument: &str, text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|why| match argument_meant(argument, text) {
        Some(meant) => format!("`{argument}` {}; did you mean `{meant}`?", why.fault()),
        None => format!("`{argument}` {why}"),
    })
}

/// Returns the argument with the duration that was probably meant: `per = "1m"`.
#[must_use]
pub fn argument_meant(argument: &str, text: &str) -> Option<String> {
    // These arguments are more often milliseconds, so a number without a unit is not read as seconds.
    let is_guess = ["deadline", "prefetch"].contains(&argument) && is_number(text.trim());
    duration_meant(text).filter(|_| !is_guess).map(|meant| format!("{argument} = \"{meant}\""))
}

/// Returns the duration that a text probably means, as it is written here: `1m` for `1 minute`, `PT1M` or `60`.
#[must_use]
pub fn duration_meant(text: &str) -> Option<String> {
    const LONGEST: usize = 60;
    let text = text.trim();
    if text.len() > LONGEST || text.ends_with('M') && !text.contains('T') {
        // `M` may mean minutes or months.
        return None;
    }
    let lower = text.to_lowercase().replace('_', " ");
    // `PT1H30M`, as in ISO 8601.
    let iso = lower
        .strip_prefix('p')
        .map(|rest| rest.replace('t', ""))
        .filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    let written = iso.unwrap_or(lower);
    let words: Vec<String> =
        written.split_whitespace().skip_while(|word| BEFORE.contains(word)).map(str::to_owned).collect();
    if let [number] = &words[..]
        && is_number(number)
    {
        let seconds = number.parse::<u64>().ok().filter(|seconds| *seconds > 0)?;
        let text = format!("{seconds}s");
        return parse_duration(&text).is_ok().then_some(text);
    }
    let (duration, read) = read_words(&words)?;
    (read == words.len() && !duration.is_zero()).then(|| format_duration(duration))
}

/// Returns the rule that a text is or probably means: `10 per 1m` for `10/minute`.
#[must_use]
pub fn rule_meant(text: &str) -> Option<Rule> {
    match text.parse::<Rule>() {
        Ok(rule) => Some(rule),
        Err(mistake) => mistake.suggestion()?.parse().ok(),
    }
}

/// Writes a rule without its name as it is in the attribute: `rule(count = 10, per = "1m")`.
#[must_use]
pub fn attribute_form(rule: &Rule) -> String {
    let count = if rule.is_varying() { "n".to_owned() } else { rule.count().to_string() };
    let duration = |argument: &str, duration: Option<Duration>| {
        duration.map(|duration| format!("{argument} = \"{}\"", format_duration(duration)))
    };
    let per = duration("per", rule.per());
    match rule.role() {
        Role::Duplicate => return format!("prevent_duplicate({})", per.unwrap_or_default()),
        Role::Concurrency => {
            return format!("concurrency(limit = {count}, {})", duration("lease", rule.lease()).unwrap_or_default());
        }
        Role::Limit => {}
    }
    let algorithm = |name: &str| Some(format!("algorithm = \"{name}\""));
    let mut arguments = vec![Some(format!("count = {count}")), per];
    match rule.algorithm() {
        // A rule without `algorithm` is a sliding window.
        Algorithm::SlidingWindow { .. } => {}
        Algorithm::FixedWindow { .. } => arguments.push(algorithm("fixed_window")),
        Algorithm::SlidingCounter { .. } => arguments.push(algorithm("sliding_counter")),
        Algorithm::TokenBucket(bucket) => arguments.extend([
            algorithm("token_bucket"),
            bucket.capacity().map(|capacity| format!("capacity = {capacity}")),
            bucket.initial().map(|initial| format!("initial = {initial}")),
            duration("reset_after", bucket.reset_after()),
        ]),
        #[cfg(feature = "cron")]
        Algorithm::Cron { schedule } => {
            arguments.push(Some(format!("cron = {:?}", schedule.expression())));
            arguments.push(Some(format!("tz = {:?}", schedule.zone())));
        }
        Algorithm::Concurrency { .. } => {}
    }
    arguments.push(rule.unit().map(|unit| format!("unit = \"{unit}\"")));
    let arguments: Vec<_> = arguments.into_iter().flatten().collect();
    format!("rule({})", arguments.join(", "))
}

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
pub(super) fn read_words(words: &[String]) -> Option<(Duration, usize)> {
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
            // The units of a sum get shorter. Only the first part may lack its number, as in `hour`.
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

/// Returns the length of `number` units, if it is a whole number of microseconds.
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

    #[test]
    fn the_durations_of_other_libraries_are_understood() {
        for (text, meant) in [
            ("60", "60s"),
            ("1 minute", "1m"),
            ("1min", "1m"),
            ("1 min", "1m"),
            ("minute", "1m"),
            ("per minute", "1m"),
            ("PT1M", "1m"),
            ("PT1H30M", "90m"),
            ("P1D", "1d"),
            ("PT0.5S", "500ms"),
            ("60 S", "1m"),
            ("1h30m", "90m"),
            ("1.5h", "90m"),
            ("1_000ms", ""),
            ("1M", ""),
            ("P1M", ""),
            ("0", ""),
            ("soon", ""),
            ("", ""),
        ] {
            assert_eq!(duration_meant(text).unwrap_or_default(), meant, "{text}");
        }
        let mistake = read_duration("per", "60").unwrap_err();
        assert_eq!(mistake, "`per` has no unit; did you mean `per = \"60s\"`?");
        for argument in ["deadline", "prefetch"] {
            assert!(!read_duration(argument, "100").unwrap_err().contains("did you mean"), "{argument}");
        }
    }

    #[test]
    fn a_text_of_another_library_is_written_as_the_attribute_has_it() {
        for (text, meant) in [
            ("10/m", r#"rule(count = 10, per = "1m")"#),
            ("10 per fixed 1h", r#"rule(count = 10, per = "1h", algorithm = "fixed_window")"#),
            ("about 9 per 1h", r#"rule(count = 9, per = "1h", algorithm = "sliding_counter")"#),
            ("5/s burst 10", r#"rule(count = 5, per = "1s", algorithm = "token_bucket", capacity = 10)"#),
            ("3 concurrent lease 30s", r#"concurrency(limit = 3, lease = "30s")"#),
            ("prevent_duplicate", r#"prevent_duplicate(per = "5s")"#),
        ] {
            assert_eq!(rule_meant(text).map(|rule| attribute_form(&rule)).as_deref(), Some(meant), "{text}");
        }
        assert_eq!(rule_meant("sms:{phone}"), None);
    }

    fn read(text: &str) -> Option<(Duration, usize)> {
        let words: Vec<_> = text.split(' ').map(str::to_owned).collect();
        read_words(&words)
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
