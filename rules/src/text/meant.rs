//! What a text was meant to be where it stands in an argument: a duration, or a whole rule.

use std::time::Duration;

use crate::algorithm::{Algorithm, Role};
use crate::duration::{format_duration, parse_duration};
use crate::rule::Rule;
use crate::text::units;
use crate::text::words::is_number;

/// Words in front of a duration that say nothing of it.
const BEFORE: [&str; 6] = ["per", "every", "each", "a", "an", "in"];

/// Reads the duration of an argument.
///
/// # Errors
///
/// What is wrong with it, and what it was probably meant to be.
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
    // Seconds are no likely unit of a deadline.
    let is_guess = argument == "deadline" && is_number(text.trim());
    duration_meant(text).filter(|_| !is_guess).map(|meant| format!("{argument} = \"{meant}\""))
}

/// Returns the duration that was probably meant by a text, as it is written here: `1m` for `1 minute`, `PT1M` or `60`.
#[must_use]
pub fn duration_meant(text: &str) -> Option<String> {
    const LONGEST: usize = 60;
    let text = text.trim();
    if text.len() > LONGEST || text.ends_with('M') && !text.contains('T') {
        // Minutes or months.
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
    let (duration, read) = units::read_duration(&words)?;
    (read == words.len() && !duration.is_zero()).then(|| format_duration(duration))
}

/// Returns the rule that a text is, or was probably meant to be: `10 per 1m` for `10/minute`.
#[must_use]
pub fn rule_meant(text: &str) -> Option<Rule> {
    match text.parse::<Rule>() {
        Ok(rule) => Some(rule),
        Err(mistake) => mistake.suggestion()?.parse().ok(),
    }
}

/// Writes a rule as the attribute has it: `rule(count = 10, per = "1m")`. The name is left out.
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
        _ => {}
    }
    let arguments: Vec<_> = arguments.into_iter().flatten().collect();
    format!("rule({})", arguments.join(", "))
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
}
