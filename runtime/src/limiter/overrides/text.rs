//! Rules as they are stored: `1;w 100 60000000;d 5000000`.
//!
//! The version of this form, then the rules. Each has the letter by which the script knows its algorithm, its count and
//! its times in microseconds; the letter of a duplicate is followed by its window alone.
//!
//! | rule | form |
//! | --- | --- |
//! | sliding window, sliding counter, fixed window | `w`, `c` or `f`, count, window |
//! | duplicate | `d`, window |
//! | token bucket | `b`, count, per, capacity, initial, reset after |
//! | cron | `k`, count, time zone, expression |

use std::fmt::Write as _;
use std::time::Duration;

use tallygate_rules::{Algorithm, Role, Rule, TokenBucket, validate_override};

use crate::micros;

/// The version of the form.
const VERSION: &str = "1";

/// The longest text of one override.
pub(super) const MOST_BYTES: usize = 8 * 1024;

/// Writes rules, or `None` where one of them has no form.
pub(super) fn write(rules: &[Rule]) -> Option<String> {
    let mut text = String::from(VERSION);
    for rule in rules {
        text.push(';');
        write_rule(&mut text, rule)?;
    }
    (text.len() <= MOST_BYTES).then_some(text)
}

fn write_rule(text: &mut String, rule: &Rule) -> Option<()> {
    let count = rule.count();
    match rule.algorithm() {
        Algorithm::SlidingWindow { per } if rule.role() == Role::Duplicate => {
            write!(text, "d {}", micros::from_duration(*per))
        }
        Algorithm::SlidingWindow { per } => write!(text, "w {count} {}", micros::from_duration(*per)),
        Algorithm::SlidingCounter { per } => write!(text, "c {count} {}", micros::from_duration(*per)),
        Algorithm::FixedWindow { per } => write!(text, "f {count} {}", micros::from_duration(*per)),
        Algorithm::TokenBucket(bucket) => {
            let (capacity, initial) = (bucket.capacity_for(count), bucket.initial_for(count));
            // Behind a closed door the bucket is remembered as long as one that lets a single token in.
            let (per, reset_after) =
                (micros::from_duration(bucket.per()), micros::from_duration(bucket.reset_after_for(count.max(1))));
            write!(text, "b {count} {per} {capacity} {initial} {reset_after}")
        }
        #[cfg(feature = "cron")]
        Algorithm::Cron { schedule } => write!(text, "k {count} {} {}", schedule.zone(), schedule.expression()),
        _ => return None,
    }
    .ok()
}

/// Reads rules, or says why these are none.
pub(super) fn read(text: &str) -> Result<Vec<Rule>, String> {
    let mut parts = text.split(';');
    if text.len() > MOST_BYTES || parts.next() != Some(VERSION) {
        return Err("it has a form of another version".into());
    }
    let rules =
        parts.map(|rule| read_rule(rule).ok_or("it has a rule of another form")).collect::<Result<Vec<_>, _>>()?;
    validate_override(&rules)
        .map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
    Ok(rules)
}

fn read_rule(text: &str) -> Option<Rule> {
    let (kind, fields) = text.split_once(' ')?;
    #[cfg(feature = "cron")]
    if kind == "k" {
        return read_cron(fields);
    }
    let numbers = fields.split(' ').map(|number| number.parse().ok()).collect::<Option<Vec<u64>>>()?;
    let time = Duration::from_micros;
    Some(match (kind, numbers[..].first_chunk(), &numbers[..]) {
        ("d", _, &[per]) => Rule::duplicate(time(per)),
        ("w", _, &[count, per]) => Rule::sliding_window(count, time(per)),
        ("c", _, &[count, per]) => Rule::sliding_counter(count, time(per)),
        ("f", _, &[count, per]) => Rule::fixed_window(count, time(per)),
        ("b", Some(&[count, per]), &[_, _, capacity, initial, reset_after]) => {
            let bucket = TokenBucket::new(time(per)).with_capacity(capacity).with_initial(initial);
            Rule::from_bucket(count, bucket.with_reset_after(time(reset_after)))
        }
        _ => return None,
    })
}

#[cfg(feature = "cron")]
fn read_cron(fields: &str) -> Option<Rule> {
    let mut fields = fields.splitn(3, ' ');
    let (count, zone, expression) = (fields.next()?.parse().ok()?, fields.next()?, fields.next()?);
    Some(Rule::cron(count, tallygate_rules::Schedule::parse(expression, zone).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn returns(rules: &[Rule]) {
        let text = write(rules).unwrap();
        let read = read(&text).unwrap();
        assert_eq!(write(&read).unwrap(), text);
        for (rule, read) in rules.iter().zip(&read) {
            assert_eq!((rule.count(), rule.role(), rule.capacity()), (read.count(), read.role(), read.capacity()));
            assert!(rule.has_same_window(read));
        }
    }

    #[test]
    fn rules_are_read_as_they_were_written() {
        returns(&[Rule::duplicate(MINUTE / 12), Rule::sliding_window(10, MINUTE), Rule::sliding_counter(5, MINUTE)]);
        returns(&[
            Rule::fixed_window(5, MINUTE),
            Rule::from_bucket(5, TokenBucket::new(MINUTE).with_capacity(9).with_initial(3)),
        ]);
        returns(&[Rule::token_bucket(5, MINUTE), Rule::sliding_window(0, 60 * MINUTE)]);
        returns(&[Rule::token_bucket(0, MINUTE)]);
        assert_eq!(write(&[Rule::token_bucket(0, MINUTE)]).unwrap(), "1;b 0 60000000 0 0 60000000");
        assert_eq!(write(&[Rule::sliding_window(100, MINUTE)]).unwrap(), "1;w 100 60000000");
    }

    #[cfg(feature = "cron")]
    #[test]
    fn a_schedule_is_read_as_it_was_written() {
        let schedule = tallygate_rules::Schedule::parse("0 0/5 6 L-3 * ?", "Asia/Shanghai").unwrap();
        returns(&[Rule::cron(10, schedule)]);
    }

    #[test]
    fn whatever_else_is_no_rules() {
        for text in ["", "1", "1;", "2;w 1 60000000", "1;w 1", "1;w 1 2 3", "1;w -1 60000000", "1;x 1 60000000"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(read("1;w 1 0").unwrap_err().contains("`per` must be longer than zero"));
        assert!(read("1;k 1 Nowhere/Land 0 0 0 * * *").is_err());
        assert!(read(&format!("1{}", ";w 1 60000000".repeat(1_000))).is_err());
    }
}
