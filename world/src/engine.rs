//! Virtual time, and what is to happen when.
//!
//! A world is one thread. Its time is a number of microseconds that moves only while no task of the tokio runtime can run:
//! then the hook that tokio calls before it would park takes the next events from the agenda. So an hour without events
//! takes no time, and the same seed gives the same order of events.

mod agenda;
mod chance;
mod sleep;

use std::cell::RefCell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};

use tokio::runtime::{Builder, RngSeed};

pub use self::agenda::EventId;
use self::agenda::{Agenda, Event};
pub use self::chance::Chance;
pub use self::sleep::{Sleep, sleep, sleep_until};

/// More steps at one instant than any world of a sensible size takes: tasks wake each other for ever.
const MOST_STEPS: u32 = 2_000_000;

/// Why a world cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// Tasks or events follow each other without end at this instant.
    Livelock {
        /// The instant, in microseconds.
        now_us: u64,
    },
    /// Nothing is left that could happen, and the world has not come to its end.
    Deadlock {
        /// The instant, in microseconds.
        now_us: u64,
    },
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Livelock { now_us } => write!(f, "livelock: tasks run for ever at {now_us} µs"),
            Self::Deadlock { now_us } => write!(f, "deadlock: nothing is left to happen at {now_us} µs"),
        }
    }
}

#[derive(Default)]
struct Engine {
    now_us: u64,
    agenda: Agenda,
    /// Steps since time moved last.
    steps: u32,
    halt: Option<Halt>,
    root: Option<Waker>,
}

thread_local! {
    static ENGINE: RefCell<Engine> = RefCell::default();
}

/// Plays a world from time 0 until its future is ready.
///
/// # Errors
///
/// The world cannot go on: see [`Halt`].
pub fn run<T>(seed: u64, world: impl Future<Output = T>) -> Result<T, Halt> {
    drop(ENGINE.take());
    let runtime = Builder::new_current_thread()
        .rng_seed(RngSeed::from_bytes(&seed.to_le_bytes()))
        .on_thread_park(advance)
        .build()
        .map_err(|_| Halt::Deadlock { now_us: 0 })?;
    let outcome = runtime.block_on(async {
        let mut world = pin!(world);
        poll_fn(|context| {
            let halt = ENGINE.with_borrow_mut(|engine| {
                engine.root = Some(context.waker().clone());
                engine.halt
            });
            match halt {
                Some(halt) => Poll::Ready(Err(halt)),
                None => world.as_mut().poll(context).map(Ok),
            }
        })
        .await
    });
    drop(runtime);
    drop(ENGINE.take());
    outcome
}

/// The time since the world began, in microseconds.
#[must_use]
pub fn now_us() -> u64 {
    ENGINE.with_borrow(|engine| engine.now_us)
}

/// Calls a function at that time, or as soon as it is over.
pub fn at(us: u64, event: impl FnOnce() + 'static) -> EventId {
    enter(us, Event::Call(Box::new(event)))
}

/// Calls a function after so many microseconds.
pub fn after(us: u64, event: impl FnOnce() + 'static) -> EventId {
    at(now_us().saturating_add(us), event)
}

/// Takes an event off the agenda, if it has not happened yet.
pub fn cancel(id: EventId) {
    let event = ENGINE.with_borrow_mut(|engine| engine.agenda.remove(id));
    drop(event);
}

/// Counts the poll of a task. Returns whether the task may run: in a world that has halted, none does.
#[must_use]
pub fn count_step() -> bool {
    ENGINE.with_borrow_mut(|engine| {
        engine.steps += 1;
        if engine.steps > MOST_STEPS {
            engine.halt.get_or_insert(Halt::Livelock { now_us: engine.now_us });
        }
        engine.halt.is_none()
    })
}

fn enter(us: u64, event: Event) -> EventId {
    ENGINE.with_borrow_mut(|engine| engine.agenda.insert(us.max(engine.now_us), event))
}

/// Moves time to the next events and lets them happen. The root is woken, so that tokio looks at its queue again.
fn advance() {
    let (due, root) = ENGINE.with_borrow_mut(|engine| {
        let due = if engine.halt.is_some() { Vec::new() } else { engine.next_events() };
        (due, engine.root.clone())
    });
    for event in due {
        match event {
            Event::Wake(waker) => waker.wake(),
            Event::Call(call) => call(),
        }
    }
    if let Some(root) = root {
        root.wake();
    }
}

impl Engine {
    fn next_events(&mut self) -> Vec<Event> {
        let Some((us, due)) = self.agenda.take_earliest() else {
            self.halt = Some(Halt::Deadlock { now_us: self.now_us });
            return Vec::new();
        };
        if us > self.now_us {
            (self.now_us, self.steps) = (us, 0);
        }
        self.steps += 1;
        if self.steps > MOST_STEPS {
            self.halt = Some(Halt::Livelock { now_us: us });
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn hours_without_events_take_no_time_and_events_keep_their_order() {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let note = |name: &'static str| {
            let seen = Rc::clone(&seen);
            move || seen.borrow_mut().push((name, now_us()))
        };
        let played = run(7, async {
            at(3_600_000_000, note("an hour"));
            after(5, note("first"));
            after(5, note("second"));
            sleep(7_200_000_000).await;
            now_us()
        });
        assert_eq!(played, Ok(7_200_000_000));
        assert_eq!(*seen.borrow(), [("first", 5), ("second", 5), ("an hour", 3_600_000_000)]);
    }

    #[test]
    fn tasks_that_wake_each_other_for_ever_are_found() {
        let played = run(7, async {
            let task = tokio::spawn(poll_fn(|context| {
                if count_step() {
                    context.waker().wake_by_ref();
                }
                Poll::<()>::Pending
            }));
            task.await
        });
        assert_eq!(played.unwrap_err(), Halt::Livelock { now_us: 0 });
    }

    #[test]
    fn a_world_in_which_nothing_is_left_to_happen_is_found() {
        let played = run(7, async {
            sleep(9).await;
            std::future::pending::<()>().await;
        });
        assert_eq!(played, Err(Halt::Deadlock { now_us: 9 }));
    }
}
