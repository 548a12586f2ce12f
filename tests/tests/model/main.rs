//! Every backend decides as the model does: admission, the rule to report, the time to wait, and all reports.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod coverage;
mod laws;
mod policies;
mod sequence;
mod transcript;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use tallygate_tests::clocked::START_US;
use tallygate_tests::seed::seed;
use tallygate_tests::server::{Server, patient};
use tokio::runtime::Builder;

use crate::coverage::Coverage;
use crate::laws::{no_window_holds_more_than_count, retry_after_is_exact};
use crate::sequence::{Stage, play};

const THREADS: u64 = 4;
const MEMORY: &str = "memory://";
/// Keys expire by the real clock: rules in Redis remember for longer than a sequence takes.
const SHORTEST: Duration = Duration::from_secs(30);

#[test]
fn memory_equals_the_model() {
    equals_the_model(MEMORY, 2_000_000, Duration::ZERO);
}

#[test]
fn redis_equals_the_model() {
    equals_the_model(&Server::start().url(), 200_000, SHORTEST);
}

#[test]
fn in_memory_the_laws_hold() {
    the_laws_hold(MEMORY, 2_000, Duration::ZERO);
}

#[test]
fn in_redis_the_laws_hold() {
    the_laws_hold(&Server::start().url(), 100, SHORTEST);
}

fn equals_the_model(url: &str, decisions: u64, shortest: Duration) {
    let coverages = on_threads(url, async |stage, seeds| {
        let mut coverage = Coverage::default();
        while coverage.decisions < decisions / THREADS {
            play(&stage, seeds.next().unwrap(), shortest, &mut coverage).await;
        }
        coverage
    });
    let mut all = Coverage::default();
    for coverage in coverages {
        all += coverage;
    }
    all.assert_wide();
}

fn the_laws_hold(url: &str, callers: usize, shortest: Duration) {
    let seen = on_threads(url, async |stage, seeds| {
        let mut seen = [0, 0];
        for seed in seeds.take(callers) {
            seen[0] += retry_after_is_exact(&stage, seed, shortest).await;
            seen[1] += no_window_holds_more_than_count(&stage, seed, shortest).await;
        }
        seen
    });
    for [waits, full] in seen {
        assert!(waits > 10 * callers as u64 && full > callers as u64, "{waits} waits, {full} full windows");
    }
}

/// Runs a test on several threads, each with a limiter and seeds of its own.
fn on_threads<T: Send>(url: &str, test: impl AsyncFn(Stage, &mut dyn Iterator<Item = u64>) -> T + Sync) -> Vec<T> {
    let (seed, test) = (seed(), &test);
    let run = |thread: u64| {
        move || {
            let clock = Arc::new(AtomicU64::new(START_US));
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                // Limiters that share a prefix share overrides.
                let limiter = patient().clock(Arc::clone(&clock)).prefix(format!("thread{thread}"));
                let limiter = limiter.connect_lazy(url).unwrap();
                let stage = Stage { limiter, clock, spare: if url == MEMORY { 0 } else { 2 } };
                let mut seeds = (0..).map(|sequence: u64| seed.wrapping_add(sequence * THREADS + thread));
                test(stage, &mut seeds).await
            })
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no mismatch, which would be shown above")).collect()
    })
}
