use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

use super::process::current;
use super::{Connecting, Process, Sleeping, in_process};
use crate::system;

const HOUR: Duration = Duration::from_secs(3_600);

/// A process whose clock is set by hand, and which wakes its tasks only then.
struct TestProcess {
    id: u64,
    start: Instant,
    passed: Mutex<Duration>,
    is_paused: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
    tasks: Mutex<Vec<AbortHandle>>,
    numbers: AtomicU64,
}

impl TestProcess {
    fn new(id: u64) -> Arc<Self> {
        Arc::new(Self {
            id,
            start: Instant::now() + 1_000 * HOUR,
            passed: Mutex::default(),
            is_paused: AtomicBool::new(false),
            wakers: Mutex::default(),
            tasks: Mutex::default(),
            numbers: AtomicU64::new(id),
        })
    }

    fn advance(&self, duration: Duration) {
        *self.passed.lock().unwrap() += duration;
        self.wake();
    }

    fn pause(&self, is_paused: bool) {
        self.is_paused.store(is_paused, Ordering::Relaxed);
        self.wake();
    }

    fn kill(&self) {
        self.tasks.lock().unwrap().iter().for_each(AbortHandle::abort);
    }

    fn wake(&self) {
        self.wakers.lock().unwrap().drain(..).for_each(Waker::wake);
    }
}

#[derive(Clone)]
struct Held(Arc<TestProcess>);

impl Process for Held {
    fn id(&self) -> u64 {
        self.0.id
    }

    fn now(&self) -> Instant {
        self.0.start + *self.0.passed.lock().unwrap()
    }

    fn unix(&self) -> Duration {
        HOUR + *self.0.passed.lock().unwrap()
    }

    fn sleep_until(&self, until: Instant) -> Sleeping {
        let process = self.clone();
        Box::pin(poll_fn(move |context| {
            if process.now() >= until {
                return Poll::Ready(());
            }
            process.0.wakers.lock().unwrap().push(context.waker().clone());
            Poll::Pending
        }))
    }

    fn random(&self) -> u64 {
        self.0.numbers.fetch_add(1, Ordering::Relaxed)
    }

    fn connect(&self, _: &str, _: u16) -> Connecting {
        Box::pin(async { Err(io::Error::from(io::ErrorKind::ConnectionRefused)) })
    }

    fn poll_running(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.0.is_paused.load(Ordering::Relaxed) {
            self.0.wakers.lock().unwrap().push(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    fn spawned(&self, task: AbortHandle) {
        self.0.tasks.lock().unwrap().push(task);
    }
}

async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

fn id() -> Option<u64> {
    current().map(|process| process.id())
}

system::per_process! {
    static COUNTED: AtomicU64 = AtomicU64::new(0);
}

#[tokio::test]
async fn time_is_that_of_the_process() {
    let process = TestProcess::new(1);
    let task = tokio::spawn(in_process(Arc::new(Held(process.clone())), async {
        assert_eq!(system::unix(), HOUR);
        let begun = system::Instant::now();
        system::sleep_until(begun + HOUR).await;
        assert!(system::timeout(HOUR, std::future::pending::<()>()).await.is_err());
        begun.elapsed()
    }));
    settle().await;
    assert!(!task.is_finished());
    process.advance(HOUR);
    settle().await;
    assert!(!task.is_finished());
    process.advance(HOUR);
    assert_eq!(task.await.unwrap(), 2 * HOUR);
}

#[tokio::test]
async fn tasks_stay_in_the_process_that_begins_them_while_they_run_and_while_they_are_dropped() {
    struct OnDrop(Arc<Mutex<Option<u64>>>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            *self.0.lock().unwrap() = id();
        }
    }
    let process = TestProcess::new(2);
    let dropped_in = Arc::new(Mutex::new(None));
    let on_drop = OnDrop(Arc::clone(&dropped_in));
    let seen = in_process(Arc::new(Held(process.clone())), async {
        let inner = system::spawn(async {
            let mut set = system::JoinSet::new();
            set.spawn(async { id() });
            set.join_next().await.unwrap().unwrap()
        });
        system::Handle::try_current().unwrap().spawn(async move {
            let _on_drop = on_drop;
            std::future::pending::<()>().await;
        });
        (id(), inner.await.unwrap())
    });
    assert_eq!((id(), seen.await, id()), (None, (Some(2), Some(2)), None));
    settle().await;
    process.kill();
    settle().await;
    assert_eq!(*dropped_in.lock().unwrap(), Some(2));
}

#[tokio::test]
async fn a_paused_process_takes_no_step() {
    let process = TestProcess::new(3);
    process.pause(true);
    let task = tokio::spawn(in_process(Arc::new(Held(process.clone())), async { 7 }));
    settle().await;
    assert!(!task.is_finished());
    process.pause(false);
    assert_eq!(task.await.unwrap(), 7);
}

#[tokio::test]
async fn chance_and_statics_are_those_of_the_process() {
    let run = |id| {
        in_process(Arc::new(Held(TestProcess::new(id))), async {
            let mut order: Vec<_> = (0..100).collect();
            system::shuffle(&mut order);
            (system::random_number(..), system::random_fraction().to_bits(), order)
        })
    };
    assert_eq!(run(4).await, run(4).await);
    assert_ne!(run(4).await, run(5).await);
    let count =
        |id| in_process(Arc::new(Held(TestProcess::new(id))), async { COUNTED.fetch_add(1, Ordering::Relaxed) });
    assert_eq!((count(6).await, count(6).await, count(7).await), (0, 1, 0));
}
