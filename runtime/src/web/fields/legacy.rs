//! Fields that were in use before the draft.

use super::item::Item;

pub(super) fn x_ratelimit(tightest: &Item) -> [(&'static str, String); 3] {
    let limit = tightest.quota.map_or(0, |quota| quota.limit);
    [
        ("x-ratelimit-limit", limit.to_string()),
        ("x-ratelimit-remaining", tightest.remaining.to_string()),
        ("x-ratelimit-reset", tightest.reset_s().to_string()),
    ]
}
