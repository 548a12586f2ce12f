//! Calls of functions that are not async, in Redis: on every kind of thread.

use std::error::Error as _;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tallygate::{
    BackendErrorKind, Limiter, OnOutage, Policy, Rejection, RejectionKind, Rule, RuleStatus, Subject, rate_limit,
};
use tallygate_harness::cluster::Cluster;
use tallygate_harness::server::{Server, free_port};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Barrier;
use tokio::task::{LocalSet, spawn_blocking};

const LONG: Duration = Duration::from_secs(30);

#[rate_limit(key = "{key}", rule(count = 1, per = "1h"), limiter = limiter)]
fn once(limiter: &Limiter, key: &str) -> Result<(), Rejection> {
    let _ = (limiter, key);
    Ok(())
}

#[rate_limit(key = "{key}", rule(count = 1, per = "1h"), limiter = limiter)]
async fn once_async(limiter: &Limiter, key: &str) -> Result<(), Rejection> {
    let _ = (limiter, key);
    Ok(())
}

fn limiter(url: &str) -> Limiter {
    Limiter::builder().deadline(LONG).connect_lazy(url).unwrap()
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Why a call was not decided.
fn source(rejection: &Rejection) -> String {
    rejection.source().unwrap().to_string()
}

/// One call is admitted, and the next one is denied.
fn assert_limited(limiter: &Limiter, key: &str) {
    assert!(once(limiter, key).is_ok(), "{key}");
    assert_eq!(once(limiter, key).unwrap_err().kind(), RejectionKind::Limited, "{key}");
}

#[test]
fn they_are_decided_on_every_kind_of_thread() {
    let server = Server::start();
    let limiter = &limiter(&server.url());
    assert_limited(limiter, "a thread");
    let workers = Runtime::new().unwrap();
    workers.block_on(async {
        assert_limited(limiter, "a thread that runs a future");
        let at_worker = limiter.clone();
        tokio::spawn(async move { assert_limited(&at_worker, "a worker") }).await.unwrap();
        let at_pool = limiter.clone();
        spawn_blocking(move || assert_limited(&at_pool, "the blocking pool")).await.unwrap();
        tokio::task::block_in_place(|| assert_limited(limiter, "a worker that may block"));
    });
    current_thread().block_on(async { assert_limited(limiter, "a runtime of one thread") });
    let local = LocalSet::new();
    let at_local = limiter.clone();
    local.block_on(&current_thread(), async {
        tokio::task::spawn_local(async move { assert_limited(&at_local, "a local task") }).await.unwrap();
    });
}

#[test]
fn one_that_blocks_the_thread_of_a_connection_is_decided_while_that_stands_still() {
    let server = Server::start();
    let limiter = &limiter(&server.url());
    current_thread().block_on(async {
        // Each of them is in the middle of a call, and has begun to refresh the overrides, when the next one blocks.
        let pending = (0..4).map(|number| {
            let limiter = limiter.clone();
            tokio::spawn(async move { once_async(&limiter, &format!("async {number}")).await })
        });
        let pending: Vec<_> = pending.collect();
        for task in pending {
            tokio::task::yield_now().await;
            _ = once(limiter, "plain");
            task.await.unwrap().unwrap();
        }
        assert_eq!(once(limiter, "plain").unwrap_err().kind(), RejectionKind::Limited);
    });
}

#[test]
fn a_cluster_decides_them() {
    let cluster = Cluster::start();
    let limiter = limiter(&cluster.url());
    for key in ["a", "b", "c", "d"] {
        assert_limited(&limiter, key);
    }
}

#[rate_limit(
    key = "{key}",
    rule(count = 1, per = "1h"),
    rule(count = 2, per = "1h", key = "{other}"),
    concurrency(limit = 1, lease = "30s"),
    refund_if = Result::is_err,
    limiter = limiter
)]
fn full(
    limiter: &Limiter,
    key: &str,
    other: &str,
    body: impl FnOnce() -> Result<(), Rejection>,
) -> Result<(), Rejection> {
    let _ = (limiter, key, other);
    body()
}

#[rate_limit(key = "{key}", concurrency(limit = 1, lease = "30s"), wait = "30s", limiter = limiter)]
fn waiting(limiter: &Limiter, key: &str) -> Result<(), Rejection> {
    let _ = (limiter, key);
    Ok(())
}

#[test]
fn leases_end_with_the_body_and_refunds_are_made_before_the_function_returns() {
    let server = Server::start();
    let limiter = &limiter(&server.url());
    let within = full(limiter, "s", "o", || full(limiter, "s", "o", || Ok(())));
    assert_eq!(within.unwrap_err().kind(), RejectionKind::Limited);
    let policy = Limiter::policy("connection.blocking.full").unwrap();
    let (main, other) = (Subject::of("s"), Subject::of("o"));
    let check = limiter.check(&policy, &main).subject("{other}", &other);
    let report = check.peek().report().blocking_decide().unwrap();
    assert_eq!(report.report().iter().map(RuleStatus::remaining).collect::<Vec<_>>()[..2], [1, 2]);
    let (running, end) = (mpsc::channel(), mpsc::channel::<()>());
    let holder = {
        let limiter = limiter.clone();
        thread::spawn(move || {
            let policy = Policy::builder("w").rule(Rule::concurrency(1, LONG)).build().unwrap();
            let permit = limiter.check(&policy, &Subject::everyone()).blocking_decide().unwrap().into_result().unwrap();
            running.0.send(policy.clone()).unwrap();
            end.1.recv().unwrap();
            drop(permit);
        })
    };
    let policy = running.1.recv().unwrap();
    assert!(!limiter.check(&policy, &Subject::everyone()).blocking_decide().unwrap().is_allowed());
    end.0.send(()).unwrap();
    assert!(limiter.acquire(&policy, &Subject::everyone()).blocking_decide().unwrap().is_allowed());
    holder.join().unwrap();
    assert!(waiting(limiter, "w").is_ok());
}

#[test]
fn a_meter_that_is_dropped_without_a_runtime_settles_before_the_thread_goes_on() {
    let server = Server::start();
    let (limiter, subject) = (limiter(&server.url()), Subject::of("s"));
    let policy = Policy::builder("metered").rule(Rule::sliding_window(100, LONG)).build().unwrap();
    let permit = limiter.check(&policy, &subject).cost(50).refundable().blocking_decide().unwrap().into_result();
    let meter = permit.unwrap().meter("calls").unwrap();
    meter.add(7);
    drop(meter);
    let decision = limiter.check(&policy, &subject).peek().report().blocking_decide().unwrap();
    assert_eq!(decision.report()[0].remaining(), 93);
}

#[test]
fn overrides_and_the_cache_of_denials_are_those_of_the_limiter() {
    let server = Server::start();
    let limiter = &limiter(&server.url());
    let policy = Policy::builder("p").rule(Rule::sliding_window(9, Duration::from_secs(60))).build().unwrap();
    let subject = Subject::of("s");
    let check = || limiter.check(&policy, &subject);
    assert!(check().blocking_decide().unwrap().is_allowed());
    let runtime = current_thread();
    runtime.block_on(limiter.override_policy("p").text("0 per 1h").set()).unwrap();
    assert!(!check().blocking_decide().unwrap().is_allowed());
    runtime.block_on(limiter.override_policy("p").clear()).unwrap();
    assert!(check().cost(9).blocking_decide().is_ok_and(|decision| !decision.is_allowed()));
    runtime.block_on(check().reset()).unwrap();
    assert!(check().cost(9).blocking_decide().unwrap().is_allowed());
}

#[test]
fn an_outage_is_decided_within_the_deadline_by_what_the_policy_says() {
    let url = format!("redis://127.0.0.1:{}/", free_port());
    let limiter = Limiter::builder().connect_lazy(&url).unwrap();
    let policy = |name: &'static str, on_outage| {
        let rule = Rule::sliding_window(1, Duration::from_secs(60));
        Policy::builder(name).rule(rule).on_outage(on_outage).build().unwrap()
    };
    let decide = |policy: &Policy| limiter.check(policy, &Subject::of("s")).blocking_decide();
    let started = Instant::now();
    assert_eq!(decide(&policy("deny", OnOutage::Deny)).unwrap_err().kind(), BackendErrorKind::Away);
    for _ in 0..3 {
        assert!(decide(&policy("allow", OnOutage::Allow)).unwrap().is_allowed());
    }
    let local = policy("local", OnOutage::Local);
    assert!(decide(&local).unwrap().is_allowed());
    assert!(!decide(&local).unwrap().is_allowed());
    assert!(started.elapsed() < LONG);
}

#[test]
fn a_thread_of_the_limiter_that_is_kept_from_its_work_holds_up_no_call_for_long() {
    let server = Server::start();
    let (warned, end) = (mpsc::channel(), mpsc::channel::<()>());
    let end_of_warning = std::sync::Mutex::new(end.1);
    let builder = Limiter::builder().deadline(Duration::from_secs(2)).on_warning(move |_| {
        warned.0.send(()).unwrap();
        _ = end_of_warning.lock().unwrap().recv();
    });
    let limiter = builder.connect_lazy(server.url()).unwrap();
    let rule = Rule::sliding_window(2, Duration::from_secs(60));
    let policy = Policy::builder("near").rule(rule).warn_at(0.5).build().unwrap();
    thread::scope(|scope| {
        let keeping = scope.spawn(|| limiter.check(&policy, &Subject::of("s")).blocking_decide());
        warned.1.recv().unwrap();
        let kept = once(&limiter, "kept").unwrap_err();
        assert!(source(&kept).contains("`on_warning`"), "{kept:?}");
        drop(end.0);
        _ = keeping.join().unwrap();
    });
    assert!(once(&limiter, "free").is_ok());
}

#[test]
fn within_a_warning_on_the_thread_of_the_limiter_they_are_refused() {
    let server = Server::start();
    let (sender, refused) = mpsc::channel();
    let other = limiter(&server.url());
    let builder = Limiter::builder().deadline(LONG).on_warning(move |_| {
        _ = sender.send(source(&once(&other, "s").unwrap_err()));
    });
    let limiter = builder.connect_lazy(server.url()).unwrap();
    let policy =
        Policy::builder("near").rule(Rule::sliding_window(2, Duration::from_secs(60))).warn_at(0.5).build().unwrap();
    assert!(limiter.check(&policy, &Subject::of("s")).blocking_decide().unwrap().is_allowed());
    let refused = refused.recv().unwrap();
    assert!(refused.contains("another thread"), "{refused}");
}

#[test]
fn a_limiter_of_several_runtimes_loses_no_call_that_is_sent_after_the_one_with_its_connection_has_ended() {
    let server = Server::start();
    let limiter = &limiter(&server.url());
    let policy = &Policy::builder("p").rule(Rule::sliding_window(1_000_000, LONG)).build().unwrap();
    let calls = async |count: usize| {
        let calls = (0..count).map(|_| async { limiter.check(policy, &Subject::of("s")).await.unwrap().is_allowed() });
        futures_util::future::join_all(calls).await.into_iter().all(|is_allowed| is_allowed)
    };
    for _ in 0..50 {
        let ended = current_thread();
        assert!(ended.block_on(calls(3)));
        drop(ended);
        // Each of the next ones runs until the calls of all are decided.
        let all_decided = &Barrier::new(3);
        let next = || {
            current_thread().block_on(async {
                let is_allowed = calls(3).await;
                all_decided.wait().await;
                is_allowed
            })
        };
        thread::scope(|scope| {
            let next: Vec<_> = (0..3).map(|_| scope.spawn(next)).collect();
            for runtime in next {
                assert!(runtime.join().unwrap());
            }
        });
    }
}
