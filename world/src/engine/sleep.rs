//! Waiting for a virtual time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::agenda::{Event, EventId};
use super::{ENGINE, cancel, enter, now_us};

/// A wait until a virtual time.
#[derive(Debug)]
#[must_use = "nothing waits until it is awaited"]
pub struct Sleep {
    until_us: u64,
    event: Option<EventId>,
}

/// Waits until that virtual time, in microseconds.
pub fn sleep_until(us: u64) -> Sleep {
    Sleep { until_us: us, event: None }
}

/// Waits so many microseconds.
pub fn sleep(us: u64) -> Sleep {
    sleep_until(now_us().saturating_add(us))
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if now_us() >= self.until_us {
            return Poll::Ready(());
        }
        let wake = Event::Wake(context.waker().clone());
        match self.event {
            Some(event) => drop(ENGINE.with_borrow_mut(|engine| engine.agenda.replace(event, wake))),
            None => self.event = Some(enter(self.until_us, wake)),
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(event) = self.event {
            cancel(event);
        }
    }
}
