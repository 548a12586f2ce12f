//! The time budget of a task: a task that never has to wait lets others run now and then.

use std::task::{Context, Poll, Waker};

pub(crate) use tokio::task::coop::consume_budget;
use tokio::task::coop::poll_proceed;

/// Uses some of the time of this task. Returns whether it has to let others run before it goes on.
pub(crate) fn is_spent() -> bool {
    match poll_proceed(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(restore) => {
            restore.made_progress();
            false
        }
        Poll::Pending => true,
    }
}
