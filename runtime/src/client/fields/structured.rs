//! The fields `RateLimit` and `RateLimit-Policy`, in the current version of their draft and in those before it.

use std::time::Duration;

use sfv::{BareItem, Item, List, ListEntry, Parser};

use super::by_name::{WindowedCount, counts};
use super::{FieldReader, MOST};
use crate::client::heard::HeardLimit;
use crate::client::moment::{Moment, decimal};

const LIMIT: &str = "ratelimit";
const POLICY: &str = "ratelimit-policy";

/// The members of a limit without a name.
const MEMBERS: [&str; 3] = ["limit", "remaining", "reset"];

/// A policy of the server.
pub(super) struct QuotaPolicy {
    /// Version 7 of the draft has no names.
    name: Option<String>,
    unit: String,
    limit: u64,
    window: Option<Duration>,
}

/// What is left of a policy.
struct ServiceLimit {
    /// Version 7 of the draft tells the limit in place of a name.
    name: Option<String>,
    limit: Option<u64>,
    remaining: u64,
    reset: Option<Duration>,
}

impl FieldReader<'_> {
    pub(super) fn quotas(&mut self) -> Vec<QuotaPolicy> {
        self.lines(POLICY, policies)
    }

    pub(super) fn structured_limits(&mut self, quotas: &[QuotaPolicy]) -> Vec<HeardLimit> {
        self.lines(LIMIT, service_limits).into_iter().take(MOST).map(|left| self.limit(left, quotas)).collect()
    }

    /// Reads the lines of a field.
    fn lines<T>(&mut self, field: &'static str, read: impl Fn(&str) -> Vec<Option<T>>) -> Vec<T> {
        let lines: Vec<_> = self.headers.get_all(field).iter().collect();
        lines.into_iter().flat_map(|line| self.members(field, line, &read)).collect()
    }

    fn limit(&mut self, left: ServiceLimit, quotas: &[QuotaPolicy]) -> HeardLimit {
        let quota = quotas.iter().find(|quota| left.name.is_some() && quota.name == left.name);
        let reset = left.reset.map(|reset| self.until(LIMIT, Moment::After(reset)));
        HeardLimit {
            // Version 7 has no names, and means the time until nothing is counted.
            resets_to_more: left.name.is_some(),
            name: left.name,
            limit: left.limit.or(quota.map(|quota| quota.limit)),
            remaining: Some(left.remaining),
            window: quota.and_then(|quota| quota.window),
            reset,
            ..HeardLimit::new(LIMIT, quota.map_or("", |quota| &quota.unit))
        }
    }
}

impl HeardLimit {
    /// Takes the window of a policy without a name, as versions 4 to 7 of the draft show it. Of several, the longest counts.
    pub(super) fn take_window(&mut self, quotas: &[QuotaPolicy]) {
        let is_its = |quota: &&QuotaPolicy| quota.name.is_none() && Some(quota.limit) == self.limit;
        if self.field == LIMIT && self.name.is_none() && self.window.is_none() {
            self.window = quotas.iter().filter(is_its).filter_map(|quota| quota.window).max();
        }
    }
}

/// `"captcha.1m";r=4;t=60`, or `limit=5, remaining=4, reset=60`
fn service_limits(text: &str) -> Vec<Option<ServiceLimit>> {
    let Some(list) = list(text) else { return unnamed_limits(text) };
    let left = |(name, item): (String, Item)| {
        let seconds = integer(&item, "t").map(Duration::from_secs);
        Some(ServiceLimit { name: Some(name), limit: None, remaining: integer(&item, "r")?, reset: seconds })
    };
    list.into_iter().map(|item| item.and_then(left)).collect()
}

/// Reads one limit, or several behind each other, as a proxy joins lines: each begins where a key comes again.
fn unnamed_limits(text: &str) -> Vec<Option<ServiceLimit>> {
    let mut limits: Vec<Vec<(&str, &str)>> = Vec::new();
    let members = text.split(',').filter_map(|member| member.trim_ascii().split_once('='));
    // The other side chooses how many members there are: unknown ones are passed over.
    for (key, value) in members.filter(|(key, _)| MEMBERS.contains(key)) {
        let is_full = limits.len() == MOST;
        match limits.last_mut().filter(|limit| limit.iter().all(|(known, _)| *known != key)) {
            Some(limit) => limit.push((key, value)),
            None if is_full => break,
            None => limits.push(vec![(key, value)]),
        }
    }
    limits.iter().map(|members| unnamed_limit(members)).collect()
}

fn unnamed_limit(members: &[(&str, &str)]) -> Option<ServiceLimit> {
    let member = |name| decimal(members.iter().find(|(key, _)| *key == name)?.1);
    Some(ServiceLimit {
        name: None,
        limit: member("limit").map(|limit| limit.as_secs()),
        remaining: member("remaining")?.as_secs(),
        reset: member("reset"),
    })
}

/// `"captcha.1m";q=5;w=60`, or `5;w=60`
fn policies(text: &str) -> Vec<Option<QuotaPolicy>> {
    let Some(list) = list(text) else {
        let unnamed =
            |WindowedCount { count, window }| QuotaPolicy { name: None, unit: String::new(), limit: count, window };
        return counts(text).into_iter().map(|count| count.map(unnamed)).collect();
    };
    let quota = |(name, item): (String, Item)| {
        let unit = item.params.get("qu").and_then(BareItem::as_string);
        let unit = unit.map(|unit| unit.as_str().to_owned()).unwrap_or_default();
        let window = integer(&item, "w").map(Duration::from_secs);
        Some(QuotaPolicy { name: Some(name), unit, limit: integer(&item, "q")?, window })
    };
    list.into_iter().map(|item| item.and_then(quota)).collect()
}

/// Reads a list of items that are names; `None` if it has none. Other items of it are not understood.
fn list(text: &str) -> Option<Vec<Option<(String, Item)>>> {
    let list: List = Parser::new(text).parse().ok()?;
    let named = |entry| {
        let ListEntry::Item(item) = entry else { return None };
        let string = item.bare_item.as_string().map(sfv::StringRef::as_str);
        let name = string.or_else(|| item.bare_item.as_token().map(sfv::TokenRef::as_str))?.to_owned();
        Some((name, item))
    };
    let items: Vec<_> = list.into_iter().map(named).collect();
    items.iter().any(Option::is_some).then_some(items)
}

fn integer(item: &Item, parameter: &str) -> Option<u64> {
    let integer = item.params.get(parameter)?.as_integer()?;
    u64::try_from(i64::from(integer)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_limits_of_a_line_are_read_than_are_kept() {
        let many = "limit=7, remaining=5, reset=60,".repeat(1_000);
        assert_eq!(unnamed_limits(&many).len(), MOST);
    }
}
