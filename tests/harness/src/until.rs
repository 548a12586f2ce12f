//! Waiting for conditions.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// A sentinel that notices that the machine was stopped does nothing for half a minute, possibly repeatedly.
const PATIENCE: Duration = Duration::from_secs(180);
const STEP: Duration = Duration::from_millis(5);

/// Waits until the condition holds.
///
/// # Panics
///
/// It does not hold within three minutes.
pub fn wait_until(condition: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "after {PATIENCE:?} it does not hold that {condition}");
        sleep(STEP);
    }
}

/// Waits until the condition holds, while other tasks run.
///
/// # Panics
///
/// It does not hold within three minutes.
pub async fn until(condition: &str, mut holds: impl FnMut() -> bool) {
    until_found(condition, async || holds()).await;
}

/// Waits until the asynchronous condition holds.
///
/// # Panics
///
/// It does not hold within three minutes.
pub async fn until_found(condition: &str, mut holds: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !holds().await {
        assert!(started.elapsed() < PATIENCE, "after {PATIENCE:?} it does not hold that {condition}");
        tokio::time::sleep(STEP).await;
    }
}
