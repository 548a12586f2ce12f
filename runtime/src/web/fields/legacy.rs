//! Fields that were in use before the draft.

use super::item::Item;

/// A ban has no limit, and so no fields.
pub(super) fn x_ratelimit(tightest: &Item) -> Option<[(&'static str, String); 3]> {
    let quota = tightest.quota?;
    Some([
        ("x-ratelimit-limit", quota.limit.to_string()),
        ("x-ratelimit-remaining", tightest.remaining.to_string()),
        ("x-ratelimit-reset", tightest.reset_s().to_string()),
    ])
}
