//! The subjects that come first.

use serde_json::Value;

/// The subjects that come first, of so many.
pub(super) struct Ranking {
    /// For people.
    pub(super) text: String,
    /// For scripts.
    pub(super) top: Vec<Value>,
    pub(super) subjects: u64,
}
