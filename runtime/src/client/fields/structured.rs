//! The fields `RateLimit` and `RateLimit-Policy`, in the current version of their draft and in those before it.

use std::time::Duration;

use sfv::{BareItem, Item, List, ListEntry, Parser};

use super::by_name::quotas;
use super::{Doubt, FieldReader, MOST};
use crate::client::heard::HeardLimit;
use crate::client::moment::{Moment, decimal};

const LIMIT: &str = "ratelimit";
const POLICY: &str = "ratelimit-policy";

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
        self.joined(POLICY, policies)
    }

    pub(super) fn structured_limits(&mut self, quotas: &[QuotaPolicy]) -> Vec<HeardLimit> {
        self.joined(LIMIT, service_limits).into_iter().take(MOST).map(|left| self.limit(left, quotas)).collect()
    }

    /// Reads the lines of a field as one, as structured fields are to be read.
    fn joined<T>(&mut self, field: &'static str, parse: impl Fn(&str) -> Option<Vec<T>>) -> Vec<T> {
        let lines: Vec<_> =
            self.headers.get_all(field).iter().map(|line| String::from_utf8_lossy(line.as_bytes())).collect();
        if lines.is_empty() {
            return Vec::new();
        }
        parse(&lines.join(", ")).unwrap_or_else(|| {
            self.doubt(Doubt::NotUnderstood(field));
            Vec::new()
        })
    }

    fn limit(&mut self, left: ServiceLimit, quotas: &[QuotaPolicy]) -> HeardLimit {
        let is_its = |quota: &&QuotaPolicy| match &left.name {
            Some(_) => quota.name == left.name,
            None => Some(quota.limit) == left.limit,
        };
        let quota = quotas.iter().find(is_its);
        let reset = left.reset.map(|reset| self.until(LIMIT, Moment::After(reset)));
        HeardLimit {
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
    /// Takes the window of a policy without a name, as versions 4 to 6 of the draft show it beside a field for each number.
    pub(super) fn take_window(&mut self, quotas: &[QuotaPolicy]) {
        let is_its = |quota: &&QuotaPolicy| quota.name.is_none() && Some(quota.limit) == self.limit;
        if self.field == LIMIT && self.window.is_none() {
            self.window = quotas.iter().find(is_its).and_then(|quota| quota.window);
        }
    }
}

/// `"captcha.1m";r=4;t=60`, or `limit=5, remaining=4, reset=60`
fn service_limits(text: &str) -> Option<Vec<ServiceLimit>> {
    let Some(list) = list(text) else { return Some(vec![unnamed_limit(text)?]) };
    let left = |(name, item): (String, Item)| {
        let seconds = integer(&item, "t").map(Duration::from_secs);
        Some(ServiceLimit { name: Some(name), limit: None, remaining: integer(&item, "r")?, reset: seconds })
    };
    list.into_iter().map(left).collect()
}

fn unnamed_limit(text: &str) -> Option<ServiceLimit> {
    let members = || text.split(',').filter_map(|member| member.trim_ascii().split_once('='));
    let member = |name| decimal(members().find(|(key, _)| *key == name)?.1);
    let (limit, remaining) = (member("limit"), member("remaining")?);
    Some(ServiceLimit {
        name: None,
        limit: limit.map(|limit| limit.as_secs()),
        remaining: remaining.as_secs(),
        reset: member("reset"),
    })
}

/// `"captcha.1m";q=5;w=60`, or `5;w=60`
fn policies(text: &str) -> Option<Vec<QuotaPolicy>> {
    let Some(list) = list(text) else {
        let unnamed = |(limit, window)| QuotaPolicy { name: None, unit: String::new(), limit, window };
        return Some(quotas(text)?.into_iter().map(unnamed).collect());
    };
    let quota = |(name, item): (String, Item)| {
        let unit = item.params.get("qu").and_then(BareItem::as_string);
        let unit = unit.map(|unit| unit.as_str().to_owned()).unwrap_or_default();
        let window = integer(&item, "w").map(Duration::from_secs);
        Some(QuotaPolicy { name: Some(name), unit, limit: integer(&item, "q")?, window })
    };
    list.into_iter().map(quota).collect()
}

/// Reads a list of items that are names.
fn list(text: &str) -> Option<Vec<(String, Item)>> {
    let list: List = Parser::new(text).parse().ok()?;
    let named = |entry| {
        let ListEntry::Item(item) = entry else { return None };
        let string = item.bare_item.as_string().map(sfv::StringRef::as_str);
        let name = string.or_else(|| item.bare_item.as_token().map(sfv::TokenRef::as_str))?.to_owned();
        Some((name, item))
    };
    list.into_iter().map(named).collect()
}

fn integer(item: &Item, parameter: &str) -> Option<u64> {
    let integer = item.params.get(parameter)?.as_integer()?;
    u64::try_from(i64::from(integer)).ok()
}
