//! Every backend decides as the model does: admission, the rule that is named, the time to wait, and all reports.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod coverage;
mod policies;
mod sequence;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use tallygate::{Limiter, LimiterBuilder};
use tallygate_tests::clocked::START_US;
use tallygate_tests::seed::seed;
use tallygate_tests::server::{Server, patient};
use tokio::runtime::Builder;

use crate::coverage::Coverage;
use crate::sequence::{Stage, play};

const THREADS: u64 = 4;

#[test]
fn memory_equals_the_model() {
    let coverage = equals_the_model(2_000_000, Duration::ZERO, |limiter| limiter.connect_lazy("memory://").unwrap());
    coverage.assert_wide();
}

#[test]
fn redis_equals_the_model() {
    let server = Server::start();
    // Keys expire by the real clock: their rules remember for longer than a sequence takes.
    let shortest = Duration::from_secs(30);
    let coverage = equals_the_model(200_000, shortest, |limiter| limiter.connect_lazy(&server.url()).unwrap());
    coverage.assert_wide();
}

/// Plays sequences on several threads, until there were so many decisions.
fn equals_the_model(
    decisions: u64,
    shortest: Duration,
    connect: impl Fn(LimiterBuilder) -> Limiter + Sync,
) -> Coverage {
    let (seed, connect) = (seed(), &connect);
    let plays = |thread: u64| {
        move || {
            let clock = Arc::new(AtomicU64::new(START_US));
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            let mut coverage = Coverage::default();
            runtime.block_on(async {
                let stage = Stage { limiter: connect(patient().clock(Arc::clone(&clock))), clock };
                let mut seeds = (0..).map(|sequence: u64| seed.wrapping_add(sequence * THREADS + thread));
                while coverage.decisions < decisions / THREADS {
                    play(&stage, seeds.next().unwrap(), shortest, &mut coverage).await;
                }
            });
            coverage
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(plays(thread))).collect();
        let mut sum = Coverage::default();
        for thread in threads {
            sum += thread.join().expect("a mismatch, told above");
        }
        sum
    })
}
