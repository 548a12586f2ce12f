//! The system below the limiter: time, tasks, random numbers, connections, and statics of a process.
//!
//! All other modules take these from here. They are those of std, tokio and the client library, unless this is built
//! with `--cfg tallygate_world`: then a fleet of limiters runs in one thread of a simulated world, and each of its
//! processes has its own.

pub(crate) mod home;
#[cfg(not(tallygate_world))]
mod real;
pub(crate) mod under_way;
#[cfg(tallygate_world)]
pub mod world;

use std::task::{Context, Poll, Waker};

pub(crate) use tokio::task::coop::consume_budget;
use tokio::task::coop::poll_proceed;

#[cfg(not(tallygate_world))]
pub(crate) use self::real::*;
#[cfg(tallygate_world)]
pub(crate) use self::world::inside::*;

/// Uses some of the time budget of this task. Returns whether the task has to let others run before it goes on: one that
/// never has to wait lets them now and then.
pub(crate) fn is_budget_spent() -> bool {
    match poll_proceed(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(restore) => {
            restore.made_progress();
            false
        }
        Poll::Pending => true,
    }
}
