//! Deadlines by the system's clock. They are right even if a test has paused tokio's clock.
//!
//! A paused clock jumps to the next timer as soon as every task waits, also for a socket. So by tokio's clock, a
//! deadline is over before the server can answer.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use tokio::task::{JoinHandle, spawn_blocking};

pub(crate) use crate::system::clocks_differ;
use crate::system::{Instant, TokioInstant, timeout_at};

/// The precision of tokio's timers.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// Whether tokio's clock has ever differed from the system's. Only a test makes it differ, so until then no wait
/// compares them.
static DIFFERED: AtomicBool = AtomicBool::new(false);

/// How a wait with a timer of tokio ended.
enum Timed<T> {
    Done(T),
    Late,
    /// The timer was too early, so tokio's clock is not the system's.
    ClockDiffers,
}

/// Compares the clocks for later waits.
pub(crate) fn compare_clocks() {
    if clocks_differ() {
        DIFFERED.store(true, Ordering::Relaxed);
    }
}

pub(crate) fn have_clocks_differed() -> bool {
    DIFFERED.load(Ordering::Relaxed)
}

/// Awaits an answer over a socket; `None` at the deadline. A paused clock does not move meanwhile.
pub(crate) async fn wait_until<F: Future>(until: Instant, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    match wait_by_tokio(until, future.as_mut()).await {
        Timed::Done(output) => Some(output),
        Timed::Late => None,
        Timed::ClockDiffers => wait_by_thread(until, future).await,
    }
}

/// Awaits a future whose waits for sockets already end by [`wait_until`]; `None` at the deadline. While tokio's clock
/// differs, only those waits have a deadline, so that callers in a queue need no thread each.
pub(crate) async fn wait_for_bounded<F: Future>(until: Instant, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    match wait_by_tokio(until, future.as_mut()).await {
        Timed::Done(output) => Some(output),
        Timed::Late => None,
        Timed::ClockDiffers => Some(future.await),
    }
}

async fn wait_by_tokio<F: Future>(until: Instant, future: Pin<&mut F>) -> Timed<F::Output> {
    if have_clocks_differed() && clocks_differ() {
        return Timed::ClockDiffers;
    }
    match timeout_at(TokioInstant::from_std(until), future).await {
        Ok(output) => Timed::Done(output),
        Err(_) if Instant::now() >= until => Timed::Late,
        Err(_) => {
            DIFFERED.store(true, Ordering::Relaxed);
            Timed::ClockDiffers
        }
    }
}

async fn wait_by_thread<F: Future>(until: Instant, mut future: Pin<&mut F>) -> Option<F::Output> {
    let (done, mut timer) = start_timer(until);
    let output = poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Pin::new(&mut timer).poll(context).map(|_| None),
    });
    let output = output.await;
    drop(done);
    output
}

/// Starts a thread that ends at this time, or when the sender is dropped. It is no closure in the generic function,
/// because the task would then be compiled for each future.
fn start_timer(until: Instant) -> (mpsc::Sender<()>, JoinHandle<()>) {
    let (done, waiting) = mpsc::channel();
    // Tokio's clock does not jump while a blocking task runs.
    let timer = spawn_blocking(move || {
        let _ = waiting.recv_timeout(until.saturating_duration_since(Instant::now()));
    });
    (done, timer)
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::thread;

    use tokio::sync::oneshot;
    use tokio::time::{advance, pause};

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(60);

    /// Answers from a thread of its own, like a server.
    fn answer_after(delay: Duration) -> oneshot::Receiver<()> {
        let (answer, answered) = oneshot::channel();
        thread::spawn(move || {
            thread::sleep(delay);
            answer.send(())
        });
        answered
    }

    async fn assert_waits_in_real_time() {
        let (paused, started) = (tokio::time::Instant::now(), Instant::now());
        assert!(wait_until(started + LONG, answer_after(SHORT)).await.is_some());
        assert!(started.elapsed() >= SHORT);
        assert!(wait_until(Instant::now() + SHORT, pending::<()>()).await.is_none());
        assert!(started.elapsed() >= 2 * SHORT);
        assert_eq!(paused.elapsed(), Duration::ZERO, "the paused clock stands still");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_takes_real_time_while_tokios_clock_is_paused_wherever_it_stands() {
        compare_clocks();
        assert_waits_in_real_time().await;
        advance(LONG).await;
        assert_waits_in_real_time().await;
    }

    #[tokio::test]
    async fn a_clock_that_is_paused_unnoticed_makes_no_wait_shorter() {
        pause();
        for _ in 0..2 {
            let started = Instant::now();
            assert!(wait_until(started + LONG, answer_after(SHORT)).await.is_some());
            assert!(wait_until(Instant::now() + SHORT, pending::<()>()).await.is_none());
            assert!(started.elapsed() >= 2 * SHORT);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_waits_for_what_another_one_awaits() {
        let (answer, answered) = oneshot::channel();
        let waiting = tokio::spawn(async move {
            let answered = wait_until(Instant::now() + LONG, answer_after(SHORT)).await;
            answer.send(answered.is_some())
        });
        let answered = wait_for_bounded(Instant::now() + LONG, answered).await;
        assert_eq!(answered, Some(Ok(true)));
        assert!(waiting.await.is_ok());
    }

    #[tokio::test]
    async fn a_running_clock_ends_a_wait_in_time() {
        let started = Instant::now();
        assert!(wait_until(started + SHORT, pending::<()>()).await.is_none());
        assert!(wait_for_bounded(started + SHORT, pending::<()>()).await.is_none());
        assert!(started.elapsed() >= SHORT);
        assert_eq!(wait_until(started + LONG, async { 7 }).await, Some(7));
    }
}
