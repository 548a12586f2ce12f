//! Calls under load, while the server is killed, stopped, restarted and filled, and looks in between whether anything leaks:
//! tasks, descriptors, memory, concurrent calls. It fails if one of them grows.

#![allow(clippy::print_stdout, clippy::expect_used, reason = "a person reads it; a test that cannot go on panics")]

use std::env;
use std::fs;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tallygate::{Ban, DecidedBy, Decision, Limiter, OnOutage, Policy, Rule, Subject};
use tallygate_harness::gauges::Gauges;
use tallygate_harness::server::Server;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const USAGE: &str = "usage: soak MINUTES";

/// How many times everything stops to be counted.
const ROUNDS: u32 = 10;
const CALLERS: usize = 64;
/// More than memory has room for, so that it is full soon.
const SUBJECTS: u64 = 20_000;
const MAX_SUBJECTS: usize = 5_000;
const PATIENCE: Duration = Duration::from_secs(30);

/// The policy of short concurrent calls, and the number of its subjects: so few that calls are denied.
const CONCURRENT: &str = "soak.running";
const FEW_SUBJECTS: u64 = 20;

/// What memory may grow by that is no leak: allocators keep pieces.
const SLACK_KIB: u64 = 8 * 1024;

/// How calls ended.
#[derive(Default)]
struct Tally {
    by_backend: AtomicU64,
    by_standby: AtomicU64,
    undecided: AtomicU64,
    dropped: AtomicU64,
}

/// What a process holds while nobody calls.
#[derive(Clone, Copy, Debug)]
struct Held {
    tasks: usize,
    descriptors: usize,
    resident_kib: u64,
    /// Concurrent calls, by the metrics of this process and by the leases in Redis.
    running: f64,
    leases: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Some(minutes) = env::args().nth(1).and_then(|minutes| minutes.parse::<f64>().ok()) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let round = Duration::from_secs_f64(minutes * 60.0 / f64::from(ROUNDS));
    let (mut server, gauges) = (Server::start(), Gauges::install());
    let builder = Limiter::builder().deadline(Duration::from_millis(50)).on_outage(OnOutage::Local).processes(4);
    let limiters = [builder.max_subjects(MAX_SUBJECTS).connect_lazy(server.url()).expect("a url"), embedded()];
    let tally = Arc::<Tally>::default();
    let mut all = Vec::new();
    for number in 1..=ROUNDS {
        let (over, is_over) = watch::channel(false);
        let callers = callers(&limiters, &tally, &is_over);
        disturb(&mut server, round).await;
        over.send_replace(true);
        callers.join_all().await;
        let held = rest(&limiters[0], &server, &gauges).await;
        println!("round {number} of {ROUNDS}: {tally}; held: {held}");
        all.push(held);
    }
    drop(limiters);
    let left = timeout(PATIENCE, until_tasks(0)).await;
    let mistakes = [grown(&all), running(&all), left.err().map(|_| format!("{} tasks outlive the limiters", tasks()))];
    let mistakes: Vec<_> = mistakes.into_iter().flatten().collect();
    for mistake in &mistakes {
        println!("LEAK: {mistake}");
    }
    if mistakes.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn embedded() -> Limiter {
    Limiter::builder().max_subjects(MAX_SUBJECTS).build_in_memory().expect("the settings are sound")
}

fn policies() -> Vec<Policy> {
    let second = Duration::from_secs(1);
    let policy = |name: &'static str| Policy::builder(name);
    let windows =
        policy("soak.windows").rule(Rule::sliding_window(5, second)).rule(Rule::sliding_window(50, 60 * second));
    let bucket = policy("soak.bucket").rule(Rule::token_bucket(100, second)).rule(Rule::fixed_window(900, 60 * second));
    let several = policy("soak.several").rule(Rule::sliding_window(9, second));
    let several = several.rule_on("all", Rule::sliding_counter(10_000, second)).ban(Ban::new(20, second, second));
    let running = policy(CONCURRENT).rule(Rule::concurrency(2, second)).rule(Rule::sliding_window(5_000, second));
    [windows, bucket, several, running].map(|builder| builder.build().expect("the rules are sound")).into()
}

fn callers(limiters: &[Limiter], tally: &Arc<Tally>, is_over: &watch::Receiver<bool>) -> JoinSet<()> {
    let mut callers = JoinSet::new();
    for number in 0..CALLERS {
        // One in eight uses memory alone.
        let limiter = limiters[usize::from(number % 8 == 0)].clone();
        let (tally, is_over, policies) = (Arc::clone(tally), is_over.clone(), policies());
        callers.spawn(async move {
            while !*is_over.borrow() {
                call(&limiter, &policies, &tally).await;
                sleep(Duration::from_millis(1)).await;
            }
        });
    }
    callers
}

/// Makes a call of any kind.
async fn call(limiter: &Limiter, policies: &[Policy], tally: &Tally) {
    let policy = &policies[fastrand::usize(..policies.len())];
    let subjects = if policy.name() == CONCURRENT { FEW_SUBJECTS } else { SUBJECTS };
    let (subject, everyone) = (Subject::of(fastrand::u64(..subjects)), Subject::everyone());
    let mut check = limiter.check(policy, &subject);
    if policy.name() == "soak.several" {
        check = check.subject("all", &everyone);
    }
    let decided = match fastrand::u8(..16) {
        0 => check.peek().report().await,
        1 => check.cost(3).report().await,
        2 => check.wait(Duration::from_millis(20)).await,
        3 => check.refundable().await,
        4 => {
            let patience = Duration::from_micros(fastrand::u64(..2_000));
            let Ok(decided) = timeout(patience, check.into_future()).await else {
                tally.dropped.fetch_add(1, Ordering::Relaxed);
                return;
            };
            decided
        }
        5 => {
            // It fails while the server is away.
            let _ = check.reset().await;
            return;
        }
        _ => check.await,
    };
    let ended = match &decided {
        Ok(decision) if decision.decided_by() == DecidedBy::Standby => &tally.by_standby,
        Ok(_) => &tally.by_backend,
        Err(_) => &tally.undecided,
    };
    ended.fetch_add(1, Ordering::Relaxed);
    if let Ok(Decision::Allowed(permit)) = decided {
        if policy.name() == CONCURRENT {
            sleep(body()).await;
        }
        // Only some permits can be refunded.
        let _ = permit.refund().await;
    }
}

/// The duration of a call: seldom so long that its lease is renewed.
fn body() -> Duration {
    Duration::from_millis(if fastrand::u8(..) == 0 { 1_200 } else { fastrand::u64(..10) })
}

/// Disturbs the server for that long, and leaves it well.
async fn disturb(server: &mut Server, time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        match fastrand::u8(..6) {
            0 => _ = server.ask::<u64>("CLIENT KILL TYPE normal SKIPME yes"),
            1 => {
                server.pause();
                sleep(Duration::from_millis(fastrand::u64(50..400))).await;
                server.resume();
            }
            2 => {
                server.kill();
                sleep(Duration::from_millis(fastrand::u64(..200))).await;
                server.restart();
            }
            3 => server.ask::<()>("SCRIPT FLUSH"),
            4 => {
                server.ask::<()>("CONFIG SET maxmemory 1");
                sleep(Duration::from_millis(fastrand::u64(..200))).await;
                server.ask::<()>("CONFIG SET maxmemory 0");
            }
            _ => {}
        }
        sleep(Duration::from_millis(fastrand::u64(100..700))).await;
    }
}

/// Waits until the limiter uses the server again and nothing is running, and returns what the process holds.
async fn rest(limiter: &Limiter, server: &Server, gauges: &Gauges) -> Held {
    let policies = policies();
    let is_back = async {
        while !limiter
            .peek(&policies[0], &Subject::everyone())
            .await
            .is_ok_and(|peek| peek.decided_by() == DecidedBy::Backend)
        {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, is_back).await.expect("the limiter recovers by itself");
    // What ends by itself has ended by then: attempts, refreshes, the keys of leases of a second.
    sleep(Duration::from_secs(3)).await;
    let running = gauges.sum("tallygate_concurrent_calls");
    // Of those that have ended and that nobody forgets, the whole key ends.
    let leases = server.ask::<Vec<String>>("KEYS */leases:*").len();
    Held { tasks: tasks(), descriptors: descriptors(), resident_kib: resident_kib(), running, leases }
}

async fn until_tasks(most: usize) {
    while tasks() > most {
        sleep(Duration::from_millis(10)).await;
    }
}

fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Says what is running although there are no calls. What waits for the end of a call is part of a call itself.
fn running(all: &[Held]) -> Option<String> {
    let held = all.iter().find(|held| held.running != 0.0 || held.leases > 0)?;
    Some(format!("calls are running while nobody calls: {held}"))
}

/// Says what has grown from the first rounds, in which everything comes to its size, to the last two.
fn grown(all: &[Held]) -> Option<String> {
    let (first, last) = (&all[..all.len() / 3], &all[all.len() - 2..]);
    let grew = |of: fn(&Held) -> u64, slack: u64| {
        let (before, after) = (first.iter().map(of).max()?, last.iter().map(of).min()?);
        (after > before + slack).then(|| format!("from {before} to {after}"))
    };
    let tasks = grew(|held| held.tasks as u64, 0).map(|grew| format!("tasks grew {grew}"));
    let descriptors = || grew(|held| held.descriptors as u64, 0).map(|grew| format!("descriptors grew {grew}"));
    let memory = || grew(|held| held.resident_kib, SLACK_KIB).map(|grew| format!("KiB of memory grew {grew}"));
    tasks.or_else(descriptors).or_else(memory)
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write!(
            f,
            "{} calls by the backend, {} by the standby, {} undecided, {} dropped",
            read(&self.by_backend),
            read(&self.by_standby),
            read(&self.undecided),
            read(&self.dropped)
        )
    }
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { tasks, descriptors, resident_kib, running, leases } = self;
        write!(f, "{tasks} tasks, {descriptors} descriptors, {resident_kib} KiB resident, ")?;
        write!(f, "{running} concurrent calls, {leases} subjects with leases")
    }
}
