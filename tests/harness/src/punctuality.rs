//! How late the machine is, so that a busy machine does not fail a test of the limiter.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Short enough to notice every wait.
const NAP: Duration = Duration::from_millis(5);
/// What a machine at rest oversleeps, too.
const USUAL: Duration = Duration::from_millis(1);
/// A system wakes those who only sleep before those who work, as the code under test does.
const WORKERS_WAIT: u32 = 8;

/// A thread that does nothing but sleep and look at the clock.
///
/// It is a thread of the system and not a task of the runtime: a limiter that blocks the runtime does not make it late.
pub struct Punctuality {
    late_us: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Punctuality {
    /// Begins to watch the machine.
    #[must_use]
    pub fn watch() -> Self {
        let (late_us, over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let thread = thread::spawn({
            let (late_us, over) = (Arc::clone(&late_us), Arc::clone(&over));
            move || {
                while !over.load(Ordering::Relaxed) {
                    let asleep = Instant::now();
                    thread::sleep(NAP);
                    let late = asleep.elapsed().saturating_sub(NAP + USUAL);
                    late_us.fetch_add(u64::try_from(late.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
                }
            }
        });
        Self { late_us, over, thread: Some(thread) }
    }

    /// Ends the watch, and returns how much longer the machine may have made a call take: nothing when at rest.
    ///
    /// All waits count and not the worst: a call is carried on by one thread after the other.
    #[must_use]
    pub fn lateness(mut self) -> Duration {
        self.end();
        Duration::from_micros(self.late_us.load(Ordering::Relaxed)) * WORKERS_WAIT
    }

    fn end(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a sleeper does not panic");
        }
    }
}

impl Drop for Punctuality {
    fn drop(&mut self) {
        self.end();
    }
}
