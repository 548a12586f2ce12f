//! The gain of a second thread.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use tallygate::{Limiter, Policy, Rule, Subject};

use super::{at_once, sliding};
use crate::duel::Duel;
use crate::figure::Figure;
use crate::stopwatch::Stopwatch;

const ROUNDS: usize = 201;
const CALLS: usize = 10_000;
const SUBJECTS: usize = 64;

/// How often threads are started again that did not run at the same time.
const ATTEMPTS: usize = 30;

pub(crate) fn figures() -> Vec<Figure> {
    let limiter = Limiter::in_memory();
    let policy = sliding("bench.threads", &[(1_000, Duration::from_millis(1))]);
    let subjects = |thread| (0..SUBJECTS).map(|number| Subject::of(thread).and(number)).collect::<Vec<_>>();
    let different = |thread, start: &Barrier| decide(&limiter, &policy, &subjects(thread), start);
    let same = |_: usize, start: &Barrier| decide(&limiter, &policy, &subjects(0), start);
    // No sliding window of a few calls has room for all of them.
    let bucket = Rule::token_bucket(1 << 20, Duration::from_millis(1));
    let bucket = Policy::builder("bench.one").rule(bucket).build().expect("a valid policy");
    let one = |_: usize, start: &Barrier| decide(&limiter, &bucket, &[Subject::of("one")], start);
    let gain = |what: &str, threads, work: &(dyn Fn(usize, &Barrier) -> Shift + Sync)| {
        let duel = Duel::of(ROUNDS, || calls_a_us(threads, work), || calls_a_us(1, work));
        Figure::ratio(what, "/µs", "one thread", &duel)
    };
    vec![
        gain("memory, two threads, different subjects", 2, &different).at_least(1.7),
        gain("memory, two threads, the same 64 subjects", 2, &same),
        gain("memory, two threads, one subject", 2, &one),
        gain("memory, four threads, different subjects", 4, &different),
        gain("memory, four threads, the same 64 subjects", 4, &same),
        gain("memory, four threads, one subject", 4, &one),
        gain("— what the machine has to give two threads: arithmetic", 2, &calculate),
        gain("— what the machine has to give four threads: arithmetic", 4, &calculate),
    ]
}

/// The time in which a thread worked, and its processor time.
struct Shift {
    began: Instant,
    ended: Instant,
    busy: Duration,
}

/// Returns how many calls so many threads make in a microsecond of processor time together, when they run at the same time. More
/// threads than the machine has cores take turns: what they then lose is the time that a lock costs while its holder waits.
fn calls_a_us(threads: usize, work: &(dyn Fn(usize, &Barrier) -> Shift + Sync)) -> f64 {
    let mut shifts = work_at_once(threads, work);
    for _ in 1..ATTEMPTS {
        if overlap(&shifts) > 0.8 {
            break;
        }
        shifts = work_at_once(threads, work);
    }
    let busiest = shifts.iter().map(|shift| shift.busy).max().expect("a thread");
    (threads * CALLS) as f64 / busiest.as_secs_f64() / 1e6
}

fn work_at_once(threads: usize, work: &(dyn Fn(usize, &Barrier) -> Shift + Sync)) -> Vec<Shift> {
    let start = &Barrier::new(threads);
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread, start))).collect();
        running.into_iter().map(|thread| thread.join().expect("it ends")).collect()
    })
}

/// Returns the share of the time in which all of them worked.
fn overlap(shifts: &[Shift]) -> f64 {
    let edges = |of: fn(&Shift) -> Instant| shifts.iter().map(of).min().zip(shifts.iter().map(of).max());
    let (first_began, last_began) = edges(|shift| shift.began).expect("a thread");
    let (first_ended, last_ended) = edges(|shift| shift.ended).expect("a thread");
    first_ended.saturating_duration_since(last_began).div_duration_f64(last_ended - first_began)
}

/// Makes the calls of one thread, after some to warm up.
fn decide(limiter: &Limiter, policy: &Policy, subjects: &[Subject], start: &Barrier) -> Shift {
    let call = |subject| {
        let decision = at_once(limiter.check(black_box(policy), black_box(subject)));
        assert!(black_box(decision).expect("memory answers").is_allowed());
    };
    subjects.iter().for_each(call);
    time(start, || subjects.iter().cycle().take(CALLS).for_each(call))
}

/// Takes about as long as a call, and shares nothing with another thread.
fn calculate(thread: usize, start: &Barrier) -> Shift {
    let call = |state: u64| (0..32).fold(state, |state, _| black_box(state).wrapping_mul(0x5851_F42D_4C95_7F2D) + 1);
    time(start, || _ = black_box((0..CALLS).fold(thread as u64, |state, _| call(state))))
}

fn time(start: &Barrier, work: impl FnOnce()) -> Shift {
    start.wait();
    let (began, busy) = (Instant::now(), Stopwatch::start());
    work();
    Shift { began, busy: busy.elapsed(), ended: Instant::now() }
}
