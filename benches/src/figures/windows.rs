//! What limiters admit at most in any window, and how much of their limit is used, at one limit and under one load.

mod play;

use std::path::Path;
use std::time::Duration;

use tallygate::{Limiter, Policy};
use tokio::runtime::Runtime;

pub(super) use self::play::{Admitted, call, most_in_a_window};
use self::play::{CALLERS, COUNT, DEMAND, PROCESSES, WINDOW};
use super::{SORTED_SET, runtime, sliding};
use crate::duel::Spread;
use crate::figure::Figure;
use crate::load::{Caller, Checker};
use crate::peer::rust::{Bucket, Governor, Limitador, Throttlecrab, TrypemaHybrid, TrypemaLocal, TrypemaRedis};
use crate::peer::{Cell, FixedWindow, Gcra, InTwoTrips, SortedSet};
use crate::server::Server;

const AHEAD: Duration = Duration::from_millis(50);

/// How often floods are played, each time others, which are the same for all limiters.
const LOADS: u64 = 5;

/// limitador itself builds its store on Redis only together with the one on disk, which compiles a database.
const IN_TWO_TRIPS: &str = "a counter that is read and then counted up, as limitador does";

/// Redis has a command that trypema needs from this version on.
const TRYPEMA_NEEDS: (u64, u64) = (7, 2);

pub(crate) fn figures(server: &Server, redis_cell: Option<&Path>) -> Vec<Figure> {
    let runtime = &runtime(2);
    let policy = sliding("bench.windows", &[(COUNT.into(), WINDOW)]);
    let mut figures = in_memory(runtime, &policy);
    figures.extend(of_tallygate(runtime, server, &policy));
    figures.extend(shared(runtime, server, SORTED_SET, async || SortedSet::load(server, &policy).await));
    figures.extend(shared(runtime, server, "a GCRA script", async || Gcra::load(server, &policy).await));
    figures
        .extend(shared(runtime, server, "a counter that expires", async || FixedWindow::load(server, &policy).await));
    figures.extend(shared(runtime, server, IN_TWO_TRIPS, async || InTwoTrips::load(server, &policy).await));
    figures.extend(of_cell(runtime, redis_cell));
    figures.extend(of_trypema(runtime, server));
    figures
}

/// Limiters of one process, which all callers share.
fn in_memory(runtime: &Runtime, policy: &Policy) -> Vec<Figure> {
    fn alone<C: Caller>(runtime: &Runtime, who: &str, caller: &C) -> [Figure; 2] {
        contend(runtime, &format!("{who}, in memory"), async || caller.clone())
    }
    let ours = alone(runtime, "Tallygate", &Checker::new(Limiter::in_memory(), policy));
    let others = [
        alone(runtime, "governor", &Governor::new(COUNT)),
        alone(runtime, "limitador", &Limitador::new(COUNT)),
        alone(runtime, "ratelimit", &Bucket::new(COUNT)),
        alone(runtime, "throttlecrab", &Throttlecrab::new(COUNT)),
        alone(runtime, "trypema", &TrypemaLocal::new(COUNT)),
    ];
    exact(ours).into_iter().chain(others.into_iter().flatten()).collect()
}

fn of_tallygate(runtime: &Runtime, server: &Server, policy: &Policy) -> Vec<Figure> {
    let ahead = policy.to_builder().prefetch(AHEAD).build().expect("a valid policy");
    let checker = async |policy: &Policy| {
        let limiter = Limiter::connect(server.url()).await.expect("the server answers");
        Checker::new(limiter, policy)
    };
    let each = shared(runtime, server, "Tallygate", async || checker(policy).await);
    let taken_ahead = shared(runtime, server, "Tallygate, 50 ms ahead", async || checker(&ahead).await);
    [exact(each), exact(taken_ahead)].into_iter().flatten().collect()
}

/// Never more than the limit.
fn exact([most, used]: [Figure; 2]) -> [Figure; 2] {
    [most.at_most(100.0), used]
}

fn of_cell(runtime: &Runtime, redis_cell: Option<&Path>) -> Vec<Figure> {
    const CELL: &str = "redis-cell";
    let Some(redis_cell) = redis_cell else {
        return vec![Figure::skipped(&most_of(CELL), "", "skipped: name its module with `--redis-cell <path>`")];
    };
    let server = Server::with_module(redis_cell);
    shared(runtime, &server, CELL, async || Cell::connect(&server, COUNT.into(), 1).await).into()
}

fn of_trypema(runtime: &Runtime, server: &Server) -> Vec<Figure> {
    const REDIS: &str = "trypema, a script for each call";
    const HYBRID: &str = "trypema, which decides in the process";
    if server.release() < TRYPEMA_NEEDS {
        return [REDIS, HYBRID].map(|who| Figure::skipped(&most_of(who), "", "skipped: it needs Redis 7.2")).into();
    }
    let each = shared(runtime, server, REDIS, async || TrypemaRedis::connect(server, COUNT).await);
    let hybrid = shared(runtime, server, HYBRID, async || TrypemaHybrid::connect(server, COUNT).await);
    [each, hybrid].into_iter().flatten().collect()
}

fn most_of(who: &str) -> String {
    format!("most in any second, of {COUNT}: {who}")
}

/// A limiter on a server, which has no keys of the one before.
fn shared<C: Caller>(runtime: &Runtime, server: &Server, who: &str, process: impl AsyncFn() -> C) -> [Figure; 2] {
    server.clear();
    contend(runtime, who, process)
}

/// Plays floods and a steady demand with a limiter of several processes. Returns the most that it admits in any window, and
/// how much of its limit is used, both in percent of the limit.
fn contend<C: Caller>(runtime: &Runtime, who: &str, process: impl AsyncFn() -> C) -> [Figure; 2] {
    let percent = |calls: f64| calls / f64::from(COUNT) * 100.0;
    let processes = async || {
        let mut processes = Vec::new();
        for _ in 0..PROCESSES {
            processes.push(process().await);
        }
        processes
    };
    let flood = |seed| runtime.block_on(async { play::floods(&processes().await, seed).await });
    let loads: Vec<_> = (0..LOADS).map(|seed| percent(play::most_in_a_window(flood(seed)) as f64)).collect();
    let worst = loads.iter().copied().fold(0.0, f64::max);
    let used = percent(runtime.block_on(async { play::steadily(&processes().await).await }));
    let used = Spread { low: used, median: used, high: used };
    let load = format!("{} callers at {DEMAND} times the limit", PROCESSES * CALLERS);
    [
        Figure::amount(&most_of(who), "%", &format!("the worst of {LOADS} loads: {worst:.1} %"), Spread::of(loads)),
        Figure::amount(&format!("used of the limit: {who}"), "%", &load, used),
    ]
}
