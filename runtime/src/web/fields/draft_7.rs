//! The fields of draft-ietf-httpapi-ratelimit-headers-07.

use super::item::{Item, Quota};
use super::structured::{Integer, list};

pub(super) fn fields(items: &[Item], tightest: &Item) -> Vec<(&'static str, String)> {
    let policy = |Quota { limit, window_s, .. }: Quota| {
        let window = window_s.map_or(String::new(), |window_s| format!(";w={}", Integer(window_s)));
        format!("{}{window}", Integer(limit))
    };
    let mut fields = vec![("ratelimit-policy", list(items.iter().filter_map(|item| item.quota).map(policy)))];
    fields.retain(|(_, value)| !value.is_empty());
    fields.push(("ratelimit", limit(tightest)));
    fields
}

/// `limit=5, remaining=4, reset=60`
fn limit(tightest: &Item) -> String {
    let limit = tightest.quota.map_or(0, |quota| quota.limit);
    let members = [("limit", limit), ("remaining", tightest.remaining), ("reset", tightest.reset_s())];
    list(members.into_iter().map(|(key, value)| format!("{key}={}", Integer(value))))
}
