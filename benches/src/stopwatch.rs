//! The time that a thread has the processor.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Measures the processor time of the calling thread. Elapsed time would include the time of others.
pub(crate) struct Stopwatch(Duration);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(processor_time())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        processor_time().saturating_sub(self.0)
    }

    /// Returns the nanoseconds that one of so many calls took.
    pub(crate) fn ns_each(&self, calls: usize) -> f64 {
        self.elapsed().as_secs_f64() * 1e9 / calls as f64
    }
}

fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("it began at zero")
}
