//! What a store on a server has to know of its limiter.

use std::time::Duration;

use crate::clock::Clock;

/// What all servers of a limiter have in common.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// What all keys begin with.
    pub(crate) prefix: String,
    /// The longest that a call takes.
    pub(crate) deadline: Duration,
    pub(crate) clock: Clock,
    /// Whether the user may not write, and so a probe does not either.
    pub(crate) looks_only: bool,
}
