//! Keys and rules in words, for readers who know neither the code nor the text form of rules.

use std::borrow::Cow;

use crate::algorithm::{Algorithm, Role};
use crate::duration::format_duration;
use crate::filter::Filter;
use crate::rule::Rule;
use crate::template::{FilteredValue, Piece, scan};

/// Members of values without a meaning for clients: `user.name.as_str()` is the name.
const ACCESSORS: [&str; 12] = [
    "as_ref",
    "as_str",
    "clone",
    "deref",
    "get",
    "inner",
    "into_inner",
    "self",
    "to_owned",
    "to_string",
    "unwrap",
    "value",
];

/// Returns what a key separates, like `phone` for `sms:{code.phone:trim}` or `client network` for `{@ip:subnet}`;
/// `None` for a key that counts all calls together.
#[must_use]
pub fn counted_in_words(key: &str) -> Option<String> {
    let pieces = scan(key).unwrap_or_default();
    let mut values: Vec<_> = pieces.iter().filter_map(value_in_words).collect();
    values.dedup();
    let last = values.pop()?;
    Some(if values.is_empty() { last } else { format!("{} and {last}", values.join(", ")) })
}

fn value_in_words(piece: &Piece<'_>) -> Option<String> {
    let Piece::Braced(inner) = piece else { return None };
    let Ok(value) = FilteredValue::parse(inner) else { return Some(in_words(inner, false)) };
    let alternatives = value.alternatives().iter();
    let is_network = |value: &FilteredValue| value.filters.iter().any(|filter| matches!(filter, Filter::Subnet(_)));
    let words = alternatives.map(|value| in_words(&value.name, is_network(value)));
    Some(words.collect::<Vec<_>>().join(" or "))
}

fn in_words(value: &str, is_network: bool) -> String {
    match value {
        "@ip" if is_network => "client network".to_owned(),
        "@ip" => "client address".to_owned(),
        "*" => "set of values".to_owned(),
        _ => {
            let network = if is_network { " network" } else { "" };
            format!("{}{network}", name(value).unwrap_or_else(|| "value".to_owned()))
        }
    }
}

/// Returns the last meaningful name in a value, as words.
fn name(value: &str) -> Option<String> {
    let names = value.trim_start_matches('@').rsplit('.').map(|name| name.trim().trim_end_matches("()"));
    let mut telling = names.filter(|name| !ACCESSORS.contains(name) && !name.starts_with(|c: char| c.is_ascii_digit()));
    telling.next().map(|name| name.trim_start_matches("r#").replace('_', " ").trim().to_owned())
}

/// Returns what a rule counts, like `requests` or `input tokens` for the unit `input_tokens`.
#[must_use]
pub fn unit_in_words(rule: &Rule) -> Cow<'static, str> {
    rule.unit().map_or("requests".into(), |unit| unit.replace('_', " ").into())
}

/// Returns a number of what a rule counts: `20,000` of a unit, as amounts of tokens and bytes are long, and `20000` calls.
#[must_use]
pub fn amount_in_words(rule: &Rule, amount: u64) -> String {
    if rule.unit().is_some() { with_commas(amount) } else { amount.to_string() }
}

/// Returns the limit of a rule as Markdown, like ``at most `5 per 1m` ``. It leaves out the initial tokens and the
/// reset of a bucket, with which clients should not plan.
#[must_use]
pub fn limit_in_words(rule: &Rule) -> String {
    let count = if rule.is_varying() { "n".to_owned() } else { amount_in_words(rule, rule.count()) };
    let amount = rule.unit().map_or_else(|| count.clone(), |_| format!("{count} {}", unit_in_words(rule)));
    let rate = |per| format!("`{amount} per {}`", format_duration(per));
    match rule.algorithm() {
        Algorithm::SlidingWindow { per } if rule.role() == Role::Duplicate => {
            format!("no duplicate within `{}`", format_duration(*per))
        }
        Algorithm::SlidingWindow { per } => format!("at most {}", rate(*per)),
        Algorithm::SlidingCounter { per } => format!("at most about {}", rate(*per)),
        Algorithm::FixedWindow { per } => format!("at most {}, in fixed windows", rate(*per)),
        Algorithm::Concurrency { .. } => {
            format!("at most `{count}` concurrent {}", if count == "1" { "request" } else { "requests" })
        }
        Algorithm::TokenBucket(bucket) => match bucket.capacity() {
            Some(capacity) => {
                format!("at most {}, and up to `{}` at once", rate(bucket.per()), amount_in_words(rule, capacity))
            }
            None => format!("at most {}, refilled evenly", rate(bucket.per())),
        },
        #[cfg(feature = "cron")]
        Algorithm::Cron { schedule } => format!("at most `{amount}` between two ticks of the schedule `{schedule}`"),
    }
}

/// Writes `20000` as `20,000`.
fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut written = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            written.push(',');
        }
        written.push(digit);
    }
    written
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::algorithm::TokenBucket;

    #[test]
    fn a_key_is_described_without_its_code() {
        for (key, words) in [
            ("{@ip}", "client address"),
            ("{@ip:subnet}", "client network"),
            ("{@ip:subnet(24, 56)}", "client network"),
            ("{@user:lower}", "user"),
            ("{@user|@ip:subnet}", "user or client network"),
            ("sms:{code.phone:trim}", "phone"),
            ("{order.customer_id.as_str()}", "customer id"),
            ("{self.tenant}/{user.0.name()}", "tenant and name"),
            ("{a}:{b}:{peer:subnet}", "a, b and peer network"),
            ("{*:debug:hash}", "set of values"),
            ("{self.0}", "value"),
            ("{r#type}", "type"),
        ] {
            assert_eq!(counted_in_words(key).as_deref(), Some(words), "{key}");
        }
        assert_eq!(counted_in_words("all {{calls}}"), None);
        assert_eq!(counted_in_words(""), None);
    }

    #[test]
    fn a_rule_is_described_without_its_text_form() {
        let minute = Duration::from_secs(60);
        let bucket = TokenBucket::new(minute);
        let burst = bucket.with_capacity(100).with_initial(3);
        for (rule, words) in [
            (Rule::sliding_window(5, minute), "at most `5 per 1m`"),
            (Rule::sliding_window(5, minute).varying(), "at most `n per 1m`"),
            (Rule::sliding_window(20_000, minute).counting("tokens"), "at most `20,000 tokens per 1m`"),
            (
                Rule::fixed_window(999, minute).counting("output_tokens"),
                "at most `999 output tokens per 1m`, in fixed windows",
            ),
            (Rule::sliding_counter(5, minute), "at most about `5 per 1m`"),
            (Rule::fixed_window(5, minute), "at most `5 per 1m`, in fixed windows"),
            (Rule::from_bucket(5, bucket), "at most `5 per 1m`, refilled evenly"),
            (Rule::from_bucket(5, burst), "at most `5 per 1m`, and up to `100` at once"),
            (Rule::concurrency(2, minute), "at most `2` concurrent requests"),
            (Rule::concurrency(1, minute), "at most `1` concurrent request"),
            (Rule::duplicate(minute), "no duplicate within `1m`"),
        ] {
            assert_eq!(limit_in_words(&rule), words);
        }
    }

    #[cfg(feature = "cron")]
    #[test]
    fn a_schedule_is_described_with_its_time_zone() {
        let schedule = crate::cron::Schedule::parse("0 0 6 * * *", "Asia/Shanghai").unwrap();
        let words = r#"at most `10` between two ticks of the schedule `"0 0 6 * * *" Asia/Shanghai`"#;
        assert_eq!(limit_in_words(&Rule::cron(10, schedule)), words);
    }
}
