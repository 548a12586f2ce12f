//! The most calls that limiters admit in any window, at one limit and under one load.
//!
//! Quiet and floods follow each other, as at the edges of windows and where tokens were saved up, limiters differ.

use std::path::Path;
use std::time::{Duration, Instant};

use fastrand::Rng;
use tallygate::Limiter;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{SORTED_SET, runtime, sliding};
use crate::duel::Spread;
use crate::figure::Figure;
use crate::load::{Caller, Checker};
use crate::peer::rust::{Bucket, Governor, Limitador, Throttlecrab, TrypemaHybrid, TrypemaLocal, TrypemaRedis};
use crate::peer::{Cell, FixedWindow, Gcra, SortedSet};
use crate::server::Server;

/// The limit of all of them.
const COUNT: u32 = 100;
const WINDOW: Duration = Duration::from_secs(1);

/// How many processes share it, where it is shared: each has its own connection, and in it, callers.
const PROCESSES: usize = 4;
const CALLERS: usize = 4;

/// How often a load is played, each time another one, which is the same for all limiters.
const LOADS: u64 = 5;
/// How many times quiet and a flood follow each other in a load.
const FLOODS: usize = 6;

/// How long a caller pauses between two calls of a flood: far more calls are made than admitted.
const PAUSE: Duration = Duration::from_millis(1);

/// The clocks of the limiters show microseconds, so two calls can be nearer to each other by that than they are counted.
const RESOLUTION: Duration = Duration::from_micros(1);

/// Redis has a command that trypema needs from this version on.
const TRYPEMA_NEEDS: (u64, u64) = (7, 2);

pub(crate) fn figures(server: &Server, redis_cell: Option<&Path>) -> Vec<Figure> {
    let runtime = &runtime(2);
    let policy = sliding("bench.windows", &[(COUNT.into(), WINDOW)]);
    let in_memory = Limiter::in_memory();
    let mut figures = vec![
        most(runtime, "in memory: Tallygate", async || Checker::new(in_memory.clone(), &policy)).at_most(COUNT.into()),
        most_alone(runtime, "in memory: governor", &Governor::new(COUNT)),
        most_alone(runtime, "in memory: limitador", &Limitador::new(COUNT)),
        most_alone(runtime, "in memory: ratelimit", &Bucket::new(COUNT)),
        most_alone(runtime, "in memory: throttlecrab", &Throttlecrab::new(COUNT)),
        most_alone(runtime, "in memory: trypema", &TrypemaLocal::new(COUNT)),
    ];
    let connect = async || Limiter::connect(&server.url()).await.expect("the server answers");
    figures.extend([
        most(runtime, "on Redis: Tallygate", async || Checker::new(connect().await, &policy)).at_most(COUNT.into()),
        most(runtime, &format!("on Redis: {SORTED_SET}"), async || SortedSet::load(server, &policy).await),
        most(runtime, "on Redis: a GCRA script", async || Gcra::load(server, &policy).await),
        most(runtime, "on Redis: a counter that expires", async || FixedWindow::load(server, &policy).await),
    ]);
    figures.extend(of_cell(runtime, redis_cell));
    figures.extend(of_trypema(runtime, server));
    figures
}

fn of_cell(runtime: &Runtime, redis_cell: Option<&Path>) -> Option<Figure> {
    let server = Server::with_module(redis_cell?);
    Some(most(runtime, "on Redis: redis-cell", async || Cell::connect(&server, COUNT.into(), 1).await))
}

fn of_trypema(runtime: &Runtime, server: &Server) -> Vec<Figure> {
    const REDIS: &str = "on Redis: trypema, a script for each call";
    const HYBRID: &str = "on Redis: trypema, which decides in the process";
    if server.release() < TRYPEMA_NEEDS {
        return [REDIS, HYBRID].map(|who| Figure::skipped(&named(who), "", "skipped: it needs Redis 7.2")).into();
    }
    vec![
        most(runtime, REDIS, async || TrypemaRedis::connect(server, COUNT).await),
        most(runtime, HYBRID, async || TrypemaHybrid::connect(server, COUNT).await),
    ]
}

fn named(who: &str) -> String {
    format!("most admitted in any second, at {COUNT} per second, {who}")
}

/// A limiter of one process, which all callers share.
fn most_alone<C: Caller>(runtime: &Runtime, who: &str, caller: &C) -> Figure {
    most(runtime, who, async || caller.clone())
}

/// A limiter of several processes.
fn most<C: Caller>(runtime: &Runtime, who: &str, process: impl AsyncFn() -> C) -> Figure {
    let mut loads = Vec::new();
    for seed in 0..LOADS {
        let admitted = runtime.block_on(async {
            let mut processes = Vec::new();
            for _ in 0..PROCESSES {
                processes.push(process().await);
            }
            play(&processes, seed).await
        });
        loads.push(most_in_a_window(&admitted));
    }
    let worst = loads.iter().copied().max().unwrap_or_default();
    Figure::amount(&named(who), "calls", &format!("the worst of {LOADS} loads: {worst}"), Spread::of_counts(loads))
}

/// An admitted call: it was decided at some time between the two.
#[derive(Clone, Copy)]
struct Admitted {
    began: Instant,
    ended: Instant,
}

async fn play<C: Caller>(processes: &[C], seed: u64) -> Vec<Admitted> {
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
        let began = Instant::now();
        if caller.call(0).await {
            admitted.push(Admitted { began, ended: Instant::now() });
        }
        sleep(PAUSE).await;
    }
    admitted
}

/// Counts only calls that began and ended in the window, so that no limiter is wronged.
fn most_in_a_window(admitted: &[Admitted]) -> usize {
    let within = |first: &Admitted| {
        let window = first.began..first.began + WINDOW.saturating_sub(RESOLUTION);
        admitted.iter().filter(|call| call.began >= window.start && call.ended < window.end).count()
    };
    admitted.iter().map(within).max().unwrap_or_default()
}
