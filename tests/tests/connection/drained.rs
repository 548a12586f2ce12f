//! Limiters of processes that end: what they leave in Redis, with and without being drained.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, mpsc};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use tallygate::{Limiter, Permit, Policy, Rule, RuleStatus, Subject};
use tallygate_harness::clocked::new_clock;
use tallygate_harness::cluster::Cluster;
use tallygate_harness::sentinels::Sentinels;
use tallygate_harness::server::{Server, connected, patient};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinSet, spawn_blocking};

const HOUR: Duration = Duration::from_secs(3_600);

/// How many calls end at once, just before the process.
const CALLS: usize = 20;

/// What each call reserves, and what it uses.
const RESERVED: u64 = 50;
const USED: u64 = 7;

fn everyone() -> Subject {
    Subject::everyone()
}

fn slots() -> Policy {
    Policy::builder("slots").rule(Rule::concurrency(CALLS as u64, HOUR)).build().unwrap()
}

fn tokens() -> Policy {
    Policy::builder("tokens").rule(Rule::sliding_window(100_000, HOUR)).build().unwrap()
}

/// Whose calls are taken ahead.
fn busy() -> Policy {
    Policy::builder("busy").rule(Rule::sliding_window(100_000, HOUR)).prefetch(Duration::from_secs(10)).build().unwrap()
}

async fn permit(limiter: &Limiter, policy: &Policy, cost: u64) -> Permit {
    limiter.check(policy, &everyone()).cost(cost).refundable().await.unwrap().into_result().unwrap()
}

/// One request: a stream whose end nobody awaits, a settlement where nobody can await, or a plain function.
async fn request(limiter: Limiter, number: usize) {
    let slot = permit(&limiter, &slots(), 1).await;
    let mut tokens = permit(&limiter, &tokens(), RESERVED).await;
    if number.is_multiple_of(2) {
        tokens.meter("calls").unwrap().add(USED);
    } else {
        spawn_blocking(move || tokens.blocking_settle(USED).unwrap()).await.unwrap();
    }
    drop(slot);
}

/// A process that ends right after its last calls.
fn process(url: &str, prefix: &str, runtime: &Runtime) {
    runtime.block_on(async {
        let limiter = connected(&patient().prefix(prefix), url).await;
        for _ in 0..40 {
            drop(permit(&limiter, &busy(), 1).await);
        }
        let mut requests: JoinSet<()> = (0..CALLS).map(|number| request(limiter.clone(), number)).collect();
        while let Some(ended) = requests.join_next().await {
            ended.unwrap();
        }
        let left = limiter.drain(Duration::from_secs(60)).await;
        assert!(left.is_nothing(), "{left}");
    });
}

fn remaining(limiter: &Limiter, policy: &Policy) -> Vec<u64> {
    let peeked = limiter.check(policy, &everyone()).peek().report().blocking_decide().unwrap();
    peeked.report().iter().map(RuleStatus::remaining).collect()
}

fn assert_ends_well(url: &str, prefix: &str) {
    let observer = patient().prefix(prefix).connect_lazy(url).unwrap();
    let runtimes: [fn() -> Runtime; 2] = [
        || Builder::new_current_thread().enable_all().build().unwrap(),
        || Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap(),
    ];
    for round in 1..=6 {
        let runtime = runtimes[round % 2]();
        process(url, prefix, &runtime);
        drop(runtime);
        let used = (round * CALLS) as u64 * USED;
        assert_eq!(remaining(&observer, &slots()), [CALLS as u64], "round {round}");
        assert_eq!(remaining(&observer, &tokens()), [100_000 - used], "round {round}");
        assert_eq!(remaining(&observer, &busy()), [100_000 - 40 * round as u64], "round {round}");
    }
}

#[test]
fn a_process_that_drains_before_it_ends_leaves_nothing_taken_on_one_server() {
    assert_ends_well(&Server::start().url(), "drained");
}

#[test]
fn a_process_that_drains_before_it_ends_leaves_nothing_taken_behind_sentinels() {
    assert_ends_well(&Sentinels::shared().url(), "drained");
}

#[test]
fn a_process_that_drains_before_it_ends_leaves_nothing_taken_on_a_cluster() {
    assert_ends_well(&Cluster::shared().url(), "drained");
}

#[tokio::test]
async fn while_redis_is_away_a_limiter_drains_no_longer_than_it_may() {
    let mut server = Server::start();
    let limiter = server.limiter().await;
    let (slot, mut tokens) = (permit(&limiter, &slots(), 1).await, permit(&limiter, &tokens(), RESERVED).await);
    server.kill();
    drop(slot);
    tokens.meter("calls").unwrap().add(USED);
    drop(tokens);
    let left = limiter.drain(Duration::from_millis(1)).await;
    assert_eq!(left.leases(), 1, "{left}");
    server.restart();
    let left = limiter.drain(Duration::from_secs(60)).await;
    assert_eq!(left.leases(), 0, "{left}");
}

#[tokio::test]
async fn a_call_that_is_tried_after_a_pause_is_waited_for() {
    let (server, clock) = (Server::start(), new_clock());
    let limiter = connected(&patient().clock(&clock), &server.url()).await;
    let rule = Rule::sliding_window(100, HOUR);
    let policy = Policy::builder("partner").rule(rule).pausable().build().unwrap();
    let pause = Duration::from_secs(60);
    limiter.check(&policy, &everyone()).pause(pause).await.unwrap();
    // For as long again, one call at a time is tried.
    clock.advance(pause);
    let permit = limiter.check(&policy, &everyone()).await.unwrap().into_result().unwrap();
    assert_eq!(limiter.drain(Duration::ZERO).await.leases(), 1);
    permit.succeeded().await.unwrap();
    drop(permit);
    let left = limiter.drain(Duration::from_secs(60)).await;
    assert!(left.is_nothing(), "{left}");
}

#[tokio::test]
async fn a_correction_that_its_caller_awaits_is_waited_for() {
    let server = Server::start();
    let limiter = server.limiter().await;
    for is_metered in [false, true] {
        let mut permit = permit(&limiter, &tokens(), RESERVED).await;
        if is_metered {
            permit.meter("calls").unwrap().add(USED);
        }
        server.pause();
        let mut settling = pin!(permit.settle_units(&[("calls", USED)]));
        let is_pending = poll_fn(|context| Poll::Ready(settling.as_mut().poll(context).is_pending()));
        assert!(is_pending.await);
        let left = limiter.drain(Duration::from_millis(1)).await;
        assert_eq!((left.corrections(), left.meters()), (1, 0), "{left}");
        server.resume();
        settling.await.unwrap();
        assert!(limiter.drain(Duration::from_secs(60)).await.is_nothing());
    }
}

#[tokio::test]
async fn a_correction_that_failed_meanwhile_is_told() {
    let mut server = Server::start();
    let limiter = server.limiter().await;
    let [mut first, second] =
        [permit(&limiter, &tokens(), RESERVED).await, permit(&limiter, &tokens(), RESERVED).await];
    server.kill();
    first.meter("calls").unwrap().add(USED);
    drop(first);
    let left = limiter.drain(Duration::from_secs(60)).await;
    assert_eq!((left.corrections(), left.failed_corrections()), (0, 1), "{left}");
    assert_eq!(left.to_string(), "1 failed correction");
    // It was told once, and one that its caller awaits is told to the caller alone, unless the limiter drains meanwhile.
    second.refund().await.unwrap_err();
    assert!(limiter.drain(Duration::from_secs(60)).await.is_nothing());
}

#[test]
fn a_warning_that_blocks_the_thread_of_the_limiter_holds_up_no_drain() {
    let server = Server::start();
    let (warned, was_warned) = mpsc::channel();
    let (end, is_over) = mpsc::channel::<()>();
    let is_over = Mutex::new(is_over);
    let builder = patient().on_warning(move |_| {
        warned.send(()).unwrap();
        _ = is_over.lock().unwrap().recv_timeout(Duration::from_secs(60));
    });
    let limiter = builder.connect_lazy(server.url()).unwrap();
    let near = Policy::builder("near").rule(Rule::sliding_window(2, HOUR)).warn_at(0.5).build().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| limiter.check(&near, &everyone()).blocking_decide());
        was_warned.recv().unwrap();
        let runtime = Builder::new_current_thread().build().unwrap();
        let left = runtime.block_on(limiter.drain(Duration::from_millis(1)));
        assert!(left.others() > 0, "{left}");
        drop(end);
        assert!(runtime.block_on(limiter.drain(Duration::from_secs(60))).is_nothing());
    });
}

#[test]
fn a_caller_on_a_runtime_without_timers_can_drain_too() {
    let server = Server::start();
    let limiter = patient().connect_lazy(server.url()).unwrap();
    let running = limiter.check(&slots(), &everyone()).blocking_decide().unwrap();
    let runtime = Builder::new_current_thread().build().unwrap();
    let left = runtime.block_on(limiter.drain(Duration::from_millis(1)));
    assert_eq!(left.leases(), 1, "{left}");
    drop(running);
    assert!(runtime.block_on(limiter.drain(Duration::from_secs(60))).is_nothing());
}

/// Another program has overwritten the tally of a unit, so nothing can be charged there.
#[tokio::test]
async fn a_failed_charge_of_one_unit_leaves_the_settlement_of_another() {
    let server = Server::start();
    let (limiter, alice) = (server.limiter().await, Subject::of("alice"));
    let policy = Policy::builder("chat")
        .rule(Rule::sliding_window(100, HOUR).counting("tokens"))
        .rule(Rule::sliding_window(100, HOUR).counting("bytes"))
        .build()
        .unwrap();
    let check = || limiter.check(&policy, &alice).cost_of("tokens", 60);
    let permit = check().refundable().await.unwrap().into_result().unwrap();
    let before: Vec<String> = server.ask("KEYS *alice*");
    assert!(check().cost_of("tokens", 0).cost_of("bytes", 1).await.unwrap().is_allowed());
    let after: Vec<String> = server.ask("KEYS *alice*");
    let bytes = after.iter().find(|key| !before.contains(key)).expect("bytes have a tally of their own");
    server.ask::<i64>(&format!("DEL {bytes}"));
    server.ask::<i64>(&format!("LPUSH {bytes} x"));
    permit.settle_units(&[("tokens", 25), ("bytes", 7)]).await.unwrap_err();
    server.ask::<i64>(&format!("DEL {bytes}"));
    let peek = limiter.peek(&policy, &alice).cost_of("bytes", 0).await.unwrap();
    assert_eq!(peek.report().iter().map(RuleStatus::used).collect::<Vec<_>>(), [25, 0]);
}
