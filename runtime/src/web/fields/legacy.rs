//! Fields that were in use before the draft.

use super::item::Item;

/// There are no fields for what has no limit, as a ban.
pub(super) fn x_ratelimit(tightest: &Item) -> Option<[(&'static str, String); 3]> {
    let (quota, reset_s) = tightest.quota_and_reset_s()?;
    Some([
        ("x-ratelimit-limit", quota.limit.to_string()),
        ("x-ratelimit-remaining", tightest.remaining.to_string()),
        ("x-ratelimit-reset", reset_s.to_string()),
    ])
}
