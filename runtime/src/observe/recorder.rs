//! When a recorder of metrics is told something: never while a lock or an initialisation of ours is held, and never of the calls
//! that it makes itself. A recorder may call limited functions, which would wait for that lock, or be counted without an end.

use std::cell::Cell;

thread_local! {
    static IS_TOLD: Cell<bool> = const { Cell::new(false) };
}

/// Tells the recorder something; `None` if this thread is within something that it is told.
pub(super) fn tell<T>(event: impl FnOnce() -> T) -> Option<T> {
    if IS_TOLD.try_with(|is_told| is_told.replace(true)) != Ok(false) {
        return None;
    }
    let _end = TellEnd;
    Some(event())
}

/// Ends what the recorder is told, also where it panics.
struct TellEnd;

impl Drop for TellEnd {
    fn drop(&mut self) {
        _ = IS_TOLD.try_with(|is_told| is_told.set(false));
    }
}
