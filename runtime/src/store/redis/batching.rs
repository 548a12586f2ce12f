//! Concurrent callers of a process share round trips: a queue of requests, and the turns in which they are sent.

pub(super) mod batch;
pub(super) mod batcher;
pub(super) mod queue;
