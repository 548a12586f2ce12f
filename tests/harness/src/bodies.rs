//! The bodies of limited calls, which are counted while they run: by themselves, and not by any limiter.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

/// How many bodies run now, and how many have run concurrently at most.
#[derive(Clone, Debug)]
pub struct Bodies(Arc<watch::Sender<Count>>);

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    running: u64,
    most: u64,
}

/// A body that runs until this is dropped.
#[derive(Debug)]
pub struct Running(Bodies);

impl Bodies {
    /// Starts without any body.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "one default is enough")]
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::default()))
    }

    /// Counts one more, until the result is dropped.
    #[must_use]
    pub fn begin(&self) -> Running {
        self.0.send_modify(|count| {
            count.running += 1;
            count.most = count.most.max(count.running);
        });
        Running(self.clone())
    }

    /// Returns the most bodies that ran concurrently.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.0.borrow().most
    }

    /// Waits until this many have run concurrently.
    ///
    /// # Panics
    ///
    /// They have not within a minute.
    pub async fn until_most(&self, number: u64) {
        let mut counts = self.0.subscribe();
        let reached = timeout(PATIENCE, counts.wait_for(|count| count.most >= number)).await;
        assert!(reached.is_ok(), "no more than {} bodies ran at a time, not {number}", self.most());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| count.running -= 1);
    }
}
