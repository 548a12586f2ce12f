//! When the log may speak: never while this thread holds a lock or an initialisation of this library, and never within
//! one of its events.
//!
//! A subscriber may call a limited function. This would wait for ever for a lock of its own thread. And if each denial
//! logs a line, and each line is denied, there is no end.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static VOICE: Voice = const { Voice::new() };
}

type Event = Box<dyn FnOnce()>;

struct Voice {
    /// The number of locks and initialisations that this thread holds.
    quiet: Cell<usize>,
    is_speaking: Cell<bool>,
    kept: RefCell<VecDeque<Event>>,
}

/// Keeps the reports of this thread until it is dropped. It begins before a lock is taken, and ends after the lock is
/// free.
pub(crate) struct Quiet(PhantomData<*const ()>);

impl Quiet {
    #[must_use]
    pub(crate) fn begin() -> Self {
        with(|voice| voice.quiet.set(voice.quiet.get() + 1));
        Self(PhantomData)
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        with(|voice| voice.quiet.set(voice.quiet.get().saturating_sub(1)));
        say_kept();
    }
}

/// Sends an event of a call, unless a subscriber has made this call within another event. `None` also if the subscriber panics.
pub(super) fn speak<T>(event: impl FnOnce() -> T) -> Option<T> {
    if with(|voice| voice.is_speaking.replace(true)) == Some(true) {
        return None;
    }
    let said = {
        let _end = EventEnd;
        caught(event)
    };
    say_kept();
    said
}

/// Sends an event that belongs to no call, as soon as this thread may speak.
pub(crate) fn report(event: impl FnOnce() + 'static) {
    with(|voice| voice.kept.borrow_mut().push_back(Box::new(event)));
    say_kept();
}

pub(super) fn is_speaking() -> bool {
    with(|voice| voice.is_speaking.get()) == Some(true)
}

fn say_kept() {
    while let Some(Some(event)) = with(Voice::next) {
        speak_one(event);
    }
}

fn speak_one(event: Event) {
    let _end = EventEnd;
    caught(event);
}

/// Ends an event.
struct EventEnd;

impl Drop for EventEnd {
    fn drop(&mut self) {
        with(|voice| voice.is_speaking.set(false));
    }
}

impl Voice {
    const fn new() -> Self {
        Self { quiet: Cell::new(0), is_speaking: Cell::new(false), kept: RefCell::new(VecDeque::new()) }
    }

    /// Takes the next event that was kept, and begins it, if this thread may speak.
    fn next(&self) -> Option<Event> {
        if self.quiet.get() > 0 || self.is_speaking.get() {
            return None;
        }
        let event = self.kept.borrow_mut().pop_front()?;
        self.is_speaking.set(true);
        Some(event)
    }
}

/// Visits the voice of this thread; `None` at the end of the thread, when it has none any more.
fn with<T>(visit: impl FnOnce(&Voice) -> T) -> Option<T> {
    VOICE.try_with(visit).ok()
}

/// Tells a subscriber or a recorder something. `None` if it panics; the panic hook of the program has then reported it. What it is
/// told has been decided, and a decision must not be lost by a panic: the place of a concurrent call would stay taken.
pub(super) fn caught<T>(event: impl FnOnce() -> T) -> Option<T> {
    // What the event leaves behind is theirs. It changes nothing of ours.
    catch_unwind(AssertUnwindSafe(event)).ok()
}
