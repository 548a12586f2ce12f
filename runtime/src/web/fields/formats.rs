//! The formats of the fields: versions of the draft, and what was in use before it.

use std::fmt::{self, Display};

use super::item::{Allowance, Item};

pub(super) fn draft_11(items: &[Item]) -> Vec<(&'static str, String)> {
    let policies = list(items.iter().filter_map(policy_item));
    let mut fields = vec![("ratelimit-policy", policies), ("ratelimit", list(items.iter().map(limit_item)))];
    fields.retain(|(_, value)| !value.is_empty());
    fields
}

/// `"captcha.1m";q=5;w=60`, or `"export.concurrency";q=2;qu="concurrent-requests"`
fn policy_item(item: &Item) -> Option<String> {
    let Allowance { limit, window_s, is_concurrency } = item.quota?;
    let unit = if is_concurrency { r#";qu="concurrent-requests""# } else { "" };
    Some(format!("{};q={}{unit}{}", QuotedString(&item.name), Integer(limit), seconds("w", window_s)))
}

/// `"captcha.1m";r=4;t=60`
fn limit_item(item: &Item) -> String {
    format!("{};r={}{}", QuotedString(&item.name), Integer(item.remaining), seconds("t", item.window_s))
}

pub(super) fn draft_7(items: &[Item], tightest: &Item) -> Vec<(&'static str, String)> {
    let policy = |quota: Allowance| format!("{}{}", Integer(quota.limit), seconds("w", quota.window_s));
    // This version has no unit for concurrent calls.
    let quotas = items.iter().filter_map(|item| item.quota).filter(|quota| !quota.is_concurrency);
    let mut fields = vec![("ratelimit-policy", list(quotas.map(policy)))];
    fields.retain(|(_, value)| !value.is_empty());
    fields.extend(draft_7_limit(tightest).map(|value| ("ratelimit", value)));
    fields
}

/// `limit=5, remaining=4, reset=60`, or `None` without a quota, as for a ban.
fn draft_7_limit(tightest: &Item) -> Option<String> {
    let (quota, reset_s) = tightest.quota_and_reset_s()?;
    let members = [("limit", quota.limit), ("remaining", tightest.remaining), ("reset", reset_s)];
    Some(list(members.into_iter().map(|(key, value)| format!("{key}={}", Integer(value)))))
}

/// Returns no fields without a quota, as for a ban.
pub(super) fn x_ratelimit(tightest: &Item) -> Option<[(&'static str, String); 3]> {
    let (quota, reset_s) = tightest.quota_and_reset_s()?;
    Some([
        ("x-ratelimit-limit", quota.limit.to_string()),
        ("x-ratelimit-remaining", tightest.remaining.to_string()),
        ("x-ratelimit-reset", reset_s.to_string()),
    ])
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
