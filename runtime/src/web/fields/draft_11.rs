//! The fields of draft-ietf-httpapi-ratelimit-headers-11.

use std::fmt::{self, Display};

use super::item::{Allowance, Item};
use super::structured::{Integer, QuotedString, list};

pub(super) fn fields(items: &[Item]) -> Vec<(&'static str, String)> {
    let policies = items.iter().filter_map(|item| Some(PolicyItem { name: &item.name, quota: item.quota? }));
    let mut fields = vec![("ratelimit-policy", list(policies)), ("ratelimit", list(items.iter().map(LimitItem)))];
    fields.retain(|(_, value)| !value.is_empty());
    fields
}

/// `"captcha.1m";q=5;w=60`, or `"export.concurrency";q=2;qu="concurrent-requests"`
struct PolicyItem<'a> {
    name: &'a str,
    quota: Allowance,
}

impl Display for PolicyItem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{};q={}", QuotedString(self.name), Integer(self.quota.limit))?;
        if self.quota.is_concurrency {
            write!(f, ";qu={}", QuotedString("concurrent-requests"))?;
        }
        self.quota.window_s.map_or(Ok(()), |window_s| write!(f, ";w={}", Integer(window_s)))
    }
}

/// `"captcha.1m";r=4;t=60`
struct LimitItem<'a>(&'a Item);

impl Display for LimitItem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Item { name, remaining, window_s, .. } = self.0;
        write!(f, "{};r={}", QuotedString(name), Integer(*remaining))?;
        window_s.map_or(Ok(()), |window_s| write!(f, ";t={}", Integer(window_s)))
    }
}
