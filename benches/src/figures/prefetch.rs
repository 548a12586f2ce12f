//! Calls that are taken ahead, beside the same policy without: one busy subject, and processes that share a limit.

use std::sync::Arc;
use std::time::Duration;

use tallygate::{Limiter, Policy, PolicyBuilder, Rejection, Rule, Subject, rate_limit};
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::runtime;
use super::windows::{Admitted, call, most_in_a_window};
use crate::duel::{Duel, Spread};
use crate::figure::Figure;
use crate::load::Caller;
use crate::server::Server;

const ROUNDS: usize = 7;
const TASKS: usize = 256;
const ROUND: Duration = Duration::from_millis(400);
const SECOND: Duration = Duration::from_secs(1);
const AHEAD: Duration = Duration::from_millis(100);

/// Far above what is called.
const FAR: u64 = 1 << 31;

const USERS: usize = 10_000;

/// More calls than a user makes in a second, and fewer than are worth taking ahead.
const FEW: u64 = 99;

const PROCESSES: usize = 16;
const SHARED: u32 = 1_000;

/// How long processes share a limit: ten windows, after one that warms up.
const WINDOWS: u32 = 10;

const ASKED: &str = "without `prefetch`";

#[rate_limit(name = "bench.ahead", rule(count = 2147483648, per = "1s"), prefetch = "100ms", limiter = limiter)]
async fn ahead(limiter: &Limiter) -> Result<(), Rejection> {
    Ok(())
}

#[rate_limit(name = "bench.asked", rule(count = 2147483648, per = "1s"), limiter = limiter)]
async fn asked(limiter: &Limiter) -> Result<(), Rejection> {
    Ok(())
}

/// Decides by hand.
#[derive(Clone)]
struct ByHand {
    limiter: Limiter,
    policy: Policy,
    subject: Subject,
}

/// Decides calls of many users of one tenant by hand.
#[derive(Clone)]
struct Tenancy {
    limiter: Limiter,
    policy: Policy,
    tenant: Subject,
    users: Arc<[Subject]>,
}

/// Calls the function whose calls are taken ahead.
#[derive(Clone)]
struct Ahead(Limiter);

/// Calls the function that asks Redis each time.
#[derive(Clone)]
struct Asked(Limiter);

impl Caller for ByHand {
    async fn call(&self, _: usize) -> bool {
        self.limiter.check(&self.policy, &self.subject).await.expect("the server answers").is_allowed()
    }
}

impl Caller for Tenancy {
    async fn call(&self, number: usize) -> bool {
        let check = self.limiter.check(&self.policy, &self.users[number % USERS]).subject("tenant", &self.tenant);
        check.await.expect("the server answers").is_allowed()
    }
}

impl Caller for Ahead {
    async fn call(&self, _: usize) -> bool {
        ahead(&self.0).await.is_ok()
    }
}

impl Caller for Asked {
    async fn call(&self, _: usize) -> bool {
        asked(&self.0).await.is_ok()
    }
}

pub(crate) fn figures(server: &Server) -> Vec<Figure> {
    let runtime = &runtime(2);
    let hands = Duel::of(
        ROUNDS,
        || {
            calls_a_second(runtime, server, |limiter| ByHand {
                limiter,
                policy: taking(FAR),
                subject: Subject::everyone(),
            })
        },
        || {
            calls_a_second(runtime, server, |limiter| ByHand {
                limiter,
                policy: asking(FAR),
                subject: Subject::everyone(),
            })
        },
    );
    let functions =
        Duel::of(ROUNDS, || calls_a_second(runtime, server, Ahead), || calls_a_second(runtime, server, Asked));
    let users: Arc<[Subject]> = (0..USERS).map(Subject::of).collect();
    let tenancy = |policy: fn(PolicyBuilder) -> Policy| {
        calls_a_second(runtime, server, |limiter| {
            let tenant = Rule::sliding_window(FAR, SECOND);
            let rules =
                Policy::builder("bench.tenancy").rule(Rule::sliding_window(FEW, SECOND)).rule_on("tenant", tenant);
            let users = Arc::clone(&users);
            Tenancy { limiter, policy: policy(rules), tenant: Subject::of("tenant"), users }
        })
    };
    let tenants = Duel::of(ROUNDS, || tenancy(|policy| build(policy.prefetch(AHEAD))), || tenancy(build));
    let calm = scripts(runtime, server, &taking(FAR), 1, 1_000);
    let busy = Duel::once(
        || scripts(runtime, server, &taking(SHARED.into()), PROCESSES, 10 * SHARED),
        || scripts(runtime, server, &asking(SHARED.into()), PROCESSES, 10 * SHARED),
    );
    let Shares { used, least, most } = runtime.block_on(share(server));
    let amount = |what: &str, unit, value| {
        let spread = Spread { median: value, low: value, high: value };
        Figure::amount(what, unit, "16 processes at 1.5 times 1,000 per 1s, 100ms ahead", spread)
    };
    let slowest = slowest_thousandth(runtime, server);
    let slowest = Spread { median: slowest, low: slowest, high: slowest };
    let calm = Spread { median: calm, low: calm, high: calm };
    vec![
        Figure::ratio("calls of one subject, by hand, 256 tasks", "/s", ASKED, &hands).at_least(30.0),
        Figure::ratio("calls of one subject, annotated, 256 tasks", "/s", ASKED, &functions).at_least(20.0),
        Figure::amount("the slowest thousandth of these calls, by hand", "µs", "256 tasks", slowest).at_most(20.0),
        Figure::ratio("calls of 10,000 users of one tenant, 256 tasks", "/s", ASKED, &tenants).at_least(1.5),
        Figure::amount("script calls of a process below the limit", "/s", "1,000 calls per 1s", calm).at_most(40.0),
        Figure::ratio("script calls of 16 processes at ten times their limit", "/s", ASKED, &busy).at_most(1.0),
        amount("what is used of a limit, of per / (per + ahead)", "×", used).at_least(0.97),
        amount("the smallest of 16 shares, of an equal one", "×", least).at_least(0.5),
        amount("the most in any window, of the count", "×", most).at_most(1.0),
    ]
}

fn asking(count: u64) -> Policy {
    build(Policy::builder("bench.asking").rule(Rule::sliding_window(count, SECOND)))
}

fn taking(count: u64) -> Policy {
    build(Policy::builder("bench.taking").rule(Rule::sliding_window(count, SECOND)).prefetch(AHEAD))
}

fn build(builder: PolicyBuilder) -> Policy {
    builder.build().expect("a valid policy")
}

async fn connect(server: &Server) -> Limiter {
    let builder = Limiter::builder().deadline(Duration::from_secs(30));
    builder.connect(server.url()).await.expect("the server answers")
}

/// Calls by many tasks for a while.
fn calls_a_second<C: Caller>(runtime: &Runtime, server: &Server, caller: impl Fn(Limiter) -> C) -> f64 {
    server.clear();
    runtime.block_on(async {
        let limiter = connect(server).await;
        let (mut tasks, started) = (JoinSet::new(), Instant::now());
        for task in 0..TASKS {
            let caller = caller(limiter.clone());
            tasks.spawn(async move {
                let mut calls = 0;
                // The clock is read now and then, as it costs as much as a decision.
                while started.elapsed() < ROUND {
                    for _ in 0..64 {
                        assert!(caller.call(task + TASKS * calls).await);
                        calls += 1;
                    }
                    yield_now().await;
                }
                calls
            });
        }
        let calls: usize = tasks.join_all().await.into_iter().sum();
        calls as f64 / started.elapsed().as_secs_f64()
    })
}

/// How long the slowest of a thousand calls takes, in microseconds, once calls are taken ahead.
fn slowest_thousandth(runtime: &Runtime, server: &Server) -> f64 {
    server.clear();
    runtime.block_on(async {
        let (limiter, policy) = (connect(server).await, taking(FAR));
        let (mut tasks, started) = (JoinSet::new(), Instant::now());
        for _ in 0..TASKS {
            let (limiter, policy) = (limiter.clone(), policy.clone());
            tasks.spawn(async move {
                let mut times = Vec::new();
                while started.elapsed() < 3 * ROUND {
                    for _ in 0..64 {
                        let called = Instant::now();
                        let decision = limiter.check(&policy, &Subject::everyone()).await.expect("the server answers");
                        assert!(decision.is_allowed());
                        if called > started + ROUND {
                            times.push(called.elapsed());
                        }
                    }
                    yield_now().await;
                }
                times
            });
        }
        let mut times = tasks.join_all().await.concat();
        times.sort_unstable();
        times[times.len() - times.len() / 1_000 - 1].as_secs_f64() * 1e6
    })
}

/// Calls at a steady rate per second. Returns the calls of each process that were admitted.
async fn steady(limiters: &[Limiter], policy: &Policy, rate: u32, windows: u32) -> Vec<Vec<Admitted>> {
    let until = Instant::now() + windows * SECOND;
    let mut tasks = JoinSet::new();
    let each = SECOND * u32::try_from(limiters.len()).unwrap() / rate;
    for limiter in limiters {
        let caller = ByHand { limiter: limiter.clone(), policy: policy.clone(), subject: Subject::everyone() };
        tasks.spawn(async move {
            let mut admitted = Vec::new();
            let mut clock = interval(each);
            clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
            while Instant::now() < until {
                clock.tick().await;
                admitted.extend(call(&caller).await);
            }
            admitted
        });
    }
    tasks.join_all().await
}

/// So many processes.
async fn processes(server: &Server, number: usize) -> Vec<Limiter> {
    let mut limiters = Vec::new();
    for _ in 0..number {
        limiters.push(connect(server).await);
    }
    limiters
}

/// How many scripts the server runs per second, while so many processes call at that rate.
fn scripts(runtime: &Runtime, server: &Server, policy: &Policy, number: usize, rate: u32) -> f64 {
    server.clear();
    runtime.block_on(async {
        let limiters = processes(server, number).await;
        steady(&limiters, policy, rate, 1).await;
        server.forget_statistics();
        steady(&limiters, policy, rate, 3).await;
        server.scripts() / 3.0
    })
}

/// How 16 processes share a limit.
struct Shares {
    /// How much of it is used, after a window that begins with all of it.
    used: f64,
    /// The smallest share, of an equal one.
    least: f64,
    /// The most in any window.
    most: f64,
}

async fn share(server: &Server) -> Shares {
    server.clear();
    let (policy, limiters) = (taking(SHARED.into()), processes(server, PROCESSES).await);
    let rate = SHARED * 3 / 2;
    steady(&limiters, &policy, rate, 2).await;
    let admitted = steady(&limiters, &policy, rate, WINDOWS).await;
    let all: usize = admitted.iter().map(Vec::len).sum();
    let whole = f64::from(SHARED * WINDOWS) / (SECOND + AHEAD).as_secs_f64();
    let least = admitted.iter().map(Vec::len).min().unwrap_or_default();
    Shares {
        used: all as f64 / whole,
        least: least as f64 * PROCESSES as f64 / all as f64,
        most: most_in_a_window(admitted.concat()) as f64 / f64::from(SHARED),
    }
}
