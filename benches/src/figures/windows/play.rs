//! The load, and what was admitted of it.
//!
//! Limiters differ at the edges of windows and where tokens were saved up, so quiet and floods follow each other. How much
//! of a limit is used shows under a steady demand above it.

use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::task::JoinSet;
use tokio::time::{self, MissedTickBehavior, interval_at, sleep};

use crate::load::Caller;

/// The limit of all limiters.
pub(super) const COUNT: u32 = 1_000;
pub(super) const WINDOW: Duration = Duration::from_secs(1);

/// How many processes share it, where it is shared: each has its own connection, and in it, callers.
pub(super) const PROCESSES: usize = 4;

/// How many callers each process has.
pub(super) const CALLERS: usize = 4;

/// How many times as much as the limit is asked for steadily.
pub(super) const DEMAND: f64 = 2.5;

/// How many times quiet and a flood follow each other.
const FLOODS: usize = 4;

/// How long a caller pauses between two calls of a flood: far more calls are made than admitted.
const PAUSE: Duration = Duration::from_millis(1);

/// How long the demand is steady, and how much of that comes before it is measured.
const STEADY: Duration = Duration::from_secs(10);
const WARM: Duration = Duration::from_secs(2);
/// From how many moments on it is looked at.
const MOMENTS: u32 = 4_000;

/// The clocks of the limiters show microseconds, so two calls can be nearer to each other by that than they are counted.
const RESOLUTION: Duration = Duration::from_micros(1);

/// An admitted call: it was decided at some time between the two.
#[derive(Clone, Copy)]
pub(in crate::figures) struct Admitted {
    began: Instant,
    ended: Instant,
}

/// Plays quiet and floods in turn.
pub(super) async fn floods<C: Caller>(processes: &[C], seed: u64) -> Vec<Admitted> {
    let mut random = Rng::with_seed(seed);
    let mut admitted = Vec::new();
    for _ in 0..FLOODS {
        sleep(WINDOW.mul_f64(random.f64() * 1.5)).await;
        let until = Instant::now() + WINDOW.mul_f64(0.1 + random.f64());
        let mut callers = JoinSet::new();
        for process in processes {
            (0..CALLERS).for_each(|_| _ = callers.spawn(flood(process.clone(), until)));
        }
        admitted.extend(callers.join_all().await.into_iter().flatten());
    }
    admitted
}

async fn flood<C: Caller>(caller: C, until: Instant) -> Vec<Admitted> {
    let mut admitted = Vec::new();
    while Instant::now() < until {
        admitted.extend(call(&caller).await);
        sleep(PAUSE).await;
    }
    admitted
}

/// Makes one call. Returns when, if it was admitted.
pub(in crate::figures) async fn call<C: Caller>(caller: &C) -> Option<Admitted> {
    let began = Instant::now();
    caller.call(0).await.then(|| Admitted { began, ended: Instant::now() })
}

/// Counts only calls that began and ended in the window, so that no limiter is wronged.
pub(in crate::figures) fn most_in_a_window(mut admitted: Vec<Admitted>) -> usize {
    admitted.sort_by_key(|call| call.began);
    let within = |first: usize| {
        let end = admitted[first].began + WINDOW.saturating_sub(RESOLUTION);
        admitted[first..].iter().take_while(|call| call.began < end).filter(|call| call.ended < end).count()
    };
    (0..admitted.len()).map(within).max().unwrap_or_default()
}

/// Asks for more than the limit at a steady rate. Returns how many calls were admitted per window.
pub(super) async fn steadily<C: Caller>(processes: &[C]) -> f64 {
    let callers = PROCESSES * CALLERS;
    let each = WINDOW.mul_f64(callers as f64 / (f64::from(COUNT) * DEMAND));
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for caller in 0..callers {
        let first = start + each.mul_f64(caller as f64 / callers as f64);
        tasks.spawn(at_a_rate(processes[caller % PROCESSES].clone(), first, each, start + STEADY));
    }
    let admitted = tasks.join_all().await.into_iter().flatten();
    let mut admitted: Vec<_> = admitted.map(|call| call.ended).collect();
    admitted.sort();
    per_window(&admitted, start + WARM)
}

async fn at_a_rate<C: Caller>(caller: C, first: Instant, each: Duration, until: Instant) -> Vec<Admitted> {
    let mut clock = interval_at(time::Instant::from_std(first), each);
    clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut admitted = Vec::new();
    while Instant::now() < until {
        clock.tick().await;
        admitted.extend(call(&caller).await);
    }
    admitted
}

/// How many there are per window. Many limiters admit the whole limit at once and then nothing for a while, so half of the time
/// is looked at, from each moment of the other half on.
fn per_window(admitted: &[Instant], start: Instant) -> f64 {
    let half = STEADY.saturating_sub(WARM) / 2;
    let before = |end: Instant| admitted.partition_point(|ended| *ended < end);
    let since = |from: Instant| before(from + half) - before(from);
    let all: usize = (0..MOMENTS).map(|moment| since(start + half * moment / MOMENTS)).sum();
    all as f64 / f64::from(MOMENTS) / half.div_duration_f64(WINDOW)
}
