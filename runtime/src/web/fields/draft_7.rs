//! The fields of draft-ietf-httpapi-ratelimit-headers-07.

use super::item::{Allowance, Item};
use super::structured::{Integer, list};

pub(super) fn fields(items: &[Item], tightest: &Item) -> Vec<(&'static str, String)> {
    let policy = |Allowance { limit, window_s, .. }: Allowance| {
        let window = window_s.map_or(String::new(), |window_s| format!(";w={}", Integer(window_s)));
        format!("{}{window}", Integer(limit))
    };
    // It has no unit for calls at a time.
    let quotas = items.iter().filter_map(|item| item.quota).filter(|quota| !quota.is_concurrency);
    let mut fields = vec![("ratelimit-policy", list(quotas.map(policy)))];
    fields.retain(|(_, value)| !value.is_empty());
    fields.extend(limit(tightest).map(|value| ("ratelimit", value)));
    fields
}

/// `limit=5, remaining=4, reset=60`; `None` for what has no limit, as a ban.
fn limit(tightest: &Item) -> Option<String> {
    let (quota, reset_s) = tightest.quota_and_reset_s()?;
    let members = [("limit", quota.limit), ("remaining", tightest.remaining), ("reset", reset_s)];
    Some(list(members.into_iter().map(|(key, value)| format!("{key}={}", Integer(value)))))
}
