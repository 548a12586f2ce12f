//! The formats of the fields: versions of the draft, and what was in use before it.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::time::Duration;

use super::item::{Allowance, Item, REQUESTS, whole_seconds};

/// The name of a field, in lower case, and its value.
pub(super) type ResponseField = (Cow<'static, str>, String);

pub(super) fn draft_11(items: &[Item]) -> Vec<ResponseField> {
    let policies = list(items.iter().filter_map(policy_item));
    let limits = list(items.iter().map(limit_item));
    let mut fields = vec![("ratelimit-policy".into(), policies), ("ratelimit".into(), limits)];
    fields.retain(|(_, value)| !value.is_empty());
    fields
}

/// `"captcha.1m";q=5;w=60`, or `"chat.tokens.1m";q=20000;qu="tokens";w=60`
fn policy_item(item: &Item) -> Option<String> {
    let Allowance { limit, unit, window_s } = item.quota.as_ref()?;
    let unit = if unit == REQUESTS { String::new() } else { format!(";qu={}", QuotedString(unit)) };
    Some(format!("{};q={}{unit}{}", QuotedString(&item.name), Integer(*limit), seconds("w", *window_s)))
}

/// `"captcha.1m";r=4;t=60`
fn limit_item(item: &Item) -> String {
    format!(
        "{};r={}{}",
        QuotedString(&item.name),
        Integer(item.remaining),
        seconds("t", item.window.map(whole_seconds))
    )
}

pub(super) fn draft_7(items: &[Item], tightest: &Item) -> Vec<ResponseField> {
    let policy = |quota: &Allowance| format!("{}{}", Integer(quota.limit), seconds("w", quota.window_s));
    // This version has no units.
    let quotas = items.iter().filter_map(|item| item.quota.as_ref()).filter(|quota| quota.unit == REQUESTS);
    let mut fields = vec![("ratelimit-policy".into(), list(quotas.map(policy)))];
    fields.retain(|(_, value)| !value.is_empty());
    fields.extend(draft_7_limit(tightest).map(|value| ("ratelimit".into(), value)));
    fields
}

/// `limit=5, remaining=4, reset=60`, or `None` without a quota, as for a ban.
fn draft_7_limit(tightest: &Item) -> Option<String> {
    let (quota, reset) = tightest.quota_and_reset()?;
    let members = [("limit", quota.limit), ("remaining", tightest.remaining), ("reset", whole_seconds(reset))];
    Some(list(members.into_iter().map(|(key, value)| format!("{key}={}", Integer(value)))))
}

/// Returns no fields without a quota, as for a ban.
pub(super) fn x_ratelimit(tightest: &Item) -> Option<[ResponseField; 3]> {
    let (quota, reset) = tightest.quota_and_reset()?;
    Some([
        ("x-ratelimit-limit".into(), quota.limit.to_string()),
        ("x-ratelimit-remaining".into(), tightest.remaining.to_string()),
        ("x-ratelimit-reset".into(), whole_seconds(reset).to_string()),
    ])
}

/// `x-ratelimit-limit-tokens: 20000` and the like, of the tightest rule of one unit.
pub(super) fn x_ratelimit_of_unit(tightest: &Item) -> Option<[ResponseField; 3]> {
    let (quota, reset) = tightest.quota_and_reset()?;
    let unit = &quota.unit;
    Some([
        (format!("x-ratelimit-limit-{unit}").into(), quota.limit.to_string()),
        (format!("x-ratelimit-remaining-{unit}").into(), tightest.remaining.to_string()),
        (format!("x-ratelimit-reset-{unit}").into(), duration(reset)),
    ])
}

/// `20ms`, `1s` or `6m0s`, rounded up. From a second on it has no fraction, which some clients cannot read.
fn duration(duration: Duration) -> String {
    const SECOND: Duration = Duration::from_secs(1);
    let millis = duration.as_micros().div_ceil(1_000);
    let seconds = whole_seconds(duration);
    let (hours, minutes, left) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        _ if duration.is_zero() => "0s".to_owned(),
        _ if millis < SECOND.as_millis() => format!("{millis}ms"),
        (0, 0) => format!("{left}s"),
        (0, minutes) => format!("{minutes}m{left}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{left}s"),
    }
}

/// The greatest integer of a structured field.
const GREATEST: u64 = 999_999_999_999_999;

/// A string: printable ASCII in quotes. Other bytes of a name are percent-encoded.
struct QuotedString<'a>(&'a str);

impl Display for QuotedString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for byte in self.0.bytes() {
            match byte {
                b'"' | b'\\' => write!(f, "\\{}", char::from(byte)),
                b' '..=b'~' => write!(f, "{}", char::from(byte)),
                _ => write!(f, "%{byte:02X}"),
            }?;
        }
        f.write_str("\"")
    }
}

/// An integer, never negative here.
struct Integer(u64);

impl Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.min(GREATEST).fmt(f)
    }
}

fn seconds(key: &str, value: Option<u64>) -> String {
    value.map_or(String::new(), |value| format!(";{key}={}", Integer(value)))
}

fn list<T: Display>(members: impl IntoIterator<Item = T>) -> String {
    members.into_iter().map(|member| member.to_string()).collect::<Vec<_>>().join(", ")
}
