//! The subjects that come first.

use serde_json::Value;

/// The subjects that come first. `subjects` is the number of all.
pub(super) struct Ranking {
    /// For people.
    pub(super) text: String,
    /// For scripts.
    pub(super) top: Vec<Value>,
    pub(super) subjects: u64,
}
