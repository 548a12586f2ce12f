//! The panics of a subscriber and of a recorder. What they are told has been decided, and a decision must not be lost by it: the
//! place of a concurrent call would stay taken.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Tells somebody outside of this library something. `None` if that panics; the panic hook of the program has then reported it.
pub(super) fn caught<T>(event: impl FnOnce() -> T) -> Option<T> {
    // What the event leaves behind is theirs. It changes nothing of ours.
    catch_unwind(AssertUnwindSafe(event)).ok()
}
