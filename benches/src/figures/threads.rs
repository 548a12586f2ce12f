//! What a second thread adds.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use tallygate::{Limiter, Policy, Subject};

use super::{at_once, sliding};
use crate::duel::Duel;
use crate::figure::Figure;

const ROUNDS: usize = 301;
const CALLS: usize = 10_000;
const SUBJECTS: usize = 64;

pub(crate) async fn figures() -> Vec<Figure> {
    let limiter = Limiter::in_memory();
    let policy = sliding("bench.threads", &[(1_000, Duration::from_millis(1))]);
    let decide = |thread, start: &Barrier| decide(&limiter, &policy, thread, start);
    let ours = Duel::of(ROUNDS, async || calls_a_us(2, &decide), async || calls_a_us(1, &decide)).await;
    let machine = Duel::of(ROUNDS, async || calls_a_us(2, &calculate), async || calls_a_us(1, &calculate)).await;
    vec![
        Figure::ratio("memory, two threads, different subjects", "/µs", "one thread", &ours).at_least(1.7),
        Figure::ratio("— what the machine has to give: arithmetic", "/µs", "one thread", &machine),
    ]
}

/// Returns how many calls so many threads make in a microsecond together.
fn calls_a_us(threads: usize, work: &(impl Fn(usize, &Barrier) -> Duration + Sync)) -> f64 {
    let start = Barrier::new(threads);
    let taken = thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn({
                    let start = &start;
                    move || work(thread, start)
                })
            })
            .collect();
        running.into_iter().map(|thread| thread.join().expect("it ends")).max()
    });
    (threads * CALLS) as f64 / taken.expect("a thread").as_secs_f64() / 1e6
}

/// Makes the calls of one thread, once unmeasured, and returns how long they took.
fn decide(limiter: &Limiter, policy: &Policy, thread: usize, start: &Barrier) -> Duration {
    let subjects: Vec<_> = (0..SUBJECTS).map(|number| Subject::of(thread).and(number)).collect();
    let call = |subject| {
        let decision = at_once(limiter.check(black_box(policy), black_box(subject)).into_future());
        assert!(black_box(decision).expect("memory answers").is_allowed());
    };
    subjects.iter().for_each(call);
    time(start, || subjects.iter().cycle().take(CALLS).for_each(call))
}

/// Takes about as long, and shares nothing with another thread.
fn calculate(thread: usize, start: &Barrier) -> Duration {
    let call = |state: u64| (0..32).fold(state, |state, _| black_box(state).wrapping_mul(0x5851_F42D_4C95_7F2D) + 1);
    time(start, || _ = black_box((0..CALLS).fold(thread as u64, |state, _| call(state))))
}

fn time(start: &Barrier, work: impl FnOnce()) -> Duration {
    start.wait();
    let started = Instant::now();
    work();
    started.elapsed()
}
