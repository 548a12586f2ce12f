//! Decisions are seen in the log, in metrics and in spans, and the subject is seen in none of them.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tallygate::context::{self, Context};
use tallygate::{Decision, Limiter, Policy, Rejection, Rule, Subject, rate_limit};
use tallygate_harness::log::Log;
use tallygate_harness::server::{Server, connected, free_port, patient};

const CANARY: &str = "canary-7391";
const HOUR: Duration = Duration::from_secs(3_600);

fn policy(count: u64) -> Policy {
    Policy::builder("observed")
        .rule(Rule::duplicate(Duration::from_millis(1)))
        .rule(Rule::sliding_window(count, HOUR))
        .build()
        .unwrap()
}

fn canary() -> Subject {
    Subject::of("user").and(CANARY)
}

fn lines_with(log: &Log, parts: &[&str]) -> usize {
    log.lines().iter().filter(|line| parts.iter().all(|part| line.contains(part))).count()
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_reported_with_policy_rule_and_kind() {
    let (log, _listening) = Log::listen();
    let (limiter, policy) = (Limiter::in_memory(), policy(1));
    assert!(limiter.check(&policy, &canary()).await.unwrap().is_allowed());
    assert_eq!(lines_with(&log, &["denied"]), 0);
    let _ = limiter.check(&policy, &canary()).await.unwrap();
    assert_eq!(lines_with(&log, &["DEBUG", "tallygate: denied", "policy=\"observed\"", "rule=0", "kind=duplicate"]), 1);
    tokio::time::advance(Duration::from_millis(1)).await;
    let _ = limiter.check(&policy, &canary()).await.unwrap();
    assert_eq!(lines_with(&log, &["DEBUG", "tallygate: denied", "policy=\"observed\"", "rule=1", "kind=limited"]), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_reported_once_and_so_is_its_end_by_a_call_that_succeeds() {
    let (log, _listening) = Log::listen();
    let policy = Policy::builder("partner").rule(Rule::sliding_window(9, HOUR)).pausable().build().unwrap();
    let limiter = Limiter::in_memory();
    let admitted = async || limiter.check(&policy, &canary()).await.unwrap().into_result().unwrap();
    let calls = [admitted().await, admitted().await];
    for call in &calls {
        call.pause(Duration::from_secs(5)).await.unwrap();
        call.succeeded().await.unwrap();
    }
    assert_eq!(lines_with(&log, &["INFO", "tallygate: a subject is paused", "policy=\"partner\"", "length=5s"]), 1);
    assert_eq!(lines_with(&log, &["open again"]), 0);
    tokio::time::advance(Duration::from_secs(5)).await;
    admitted().await.succeeded().await.unwrap();
    admitted().await.succeeded().await.unwrap();
    assert_eq!(lines_with(&log, &["INFO", "tallygate: a subject is open again", "policy=\"partner\""]), 1);
    assert_eq!(lines_with(&log, &[CANARY]), 0);
}

#[tokio::test]
async fn a_denial_and_a_warning_say_the_unit_of_a_rule_that_does_not_count_calls() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let (log, _listening) = Log::listen();
    let tokens = Rule::sliding_window(100, HOUR).counting("tokens").named("hourly");
    let policy = Policy::builder("chat").rule(Rule::sliding_window(3, HOUR)).rule(tokens).warn_at(0.8);
    let (limiter, policy) = (Limiter::in_memory(), policy.build().unwrap());
    for tokens in [90, 11, 1, 1, 1] {
        let _ = limiter.check(&policy, &canary()).cost_of("tokens", tokens).await.unwrap();
    }
    assert_eq!(lines_with(&log, &["tallygate: denied", "rule=1 unit=\"tokens\" kind=limited"]), 1);
    assert_eq!(lines_with(&log, &["tallygate: denied", "rule=0 kind=limited"]), 1);
    assert_eq!(lines_with(&log, &["near a limit", "rule=1 unit=\"tokens\""]), 1);
    let mut counted = Vec::new();
    for (key, _, _, value) in snapshots.snapshot().into_vec() {
        let labels: Vec<_> = key.key().labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        // Those without a policy are of the whole process.
        if let (DebugValue::Counter(count), false) = (value, labels.is_empty()) {
            counted.push(format!("{} {count}", labels.join(" ")));
        }
    }
    counted.sort();
    let expected = [
        "policy=chat rule=0 1",
        "policy=chat rule=0 outcome=limited decided_by=backend 1",
        "policy=chat rule=hourly outcome=limited decided_by=backend unit=tokens 1",
        "policy=chat rule=hourly unit=tokens 1",
        "policy=chat rule=none outcome=allowed decided_by=backend 3",
        "policy=chat unit=tokens change=added 0",
        "policy=chat unit=tokens change=charged 92",
        "policy=chat unit=tokens change=removed 0",
    ];
    assert_eq!(counted, expected);
}

#[tokio::test]
async fn a_peek_is_not_reported() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let (log, _listening) = Log::listen();
    let server = Server::start();
    for limiter in [Limiter::in_memory(), server.limiter().await] {
        // Since the last time.
        let measured = || {
            let measured = snapshots.snapshot().into_vec().into_iter().map(|(.., value)| match value {
                DebugValue::Counter(times) => usize::try_from(times).unwrap(),
                DebugValue::Histogram(times) => times.len(),
                DebugValue::Gauge(_) => 0,
            });
            measured.sum::<usize>()
        };
        assert!(limiter.check(&policy(1), &canary()).await.unwrap().is_allowed());
        assert_eq!(measured(), 2);
        let before = lines_with(&log, &["observed"]);
        for check in [limiter.peek(&policy(1), &canary()), limiter.check(&policy(1), &canary()).peek()] {
            assert!(!check.await.unwrap().is_allowed());
        }
        assert_eq!((measured(), lines_with(&log, &["observed"])), (0, before));
    }
}

#[tokio::test]
async fn an_outage_is_reported_for_each_call() {
    let (log, _listening) = Log::listen();
    let url = format!("redis://127.0.0.1:{}/", free_port());
    let limiter = Limiter::builder().deadline(Duration::from_millis(50)).connect_lazy(&url).unwrap();
    for _ in 0..3 {
        assert!(limiter.check(&policy(1), &canary()).await.is_err());
    }
    assert_eq!(lines_with(&log, &["DEBUG", "no decision", "policy=\"observed\"", "kind=unavailable", "error="]), 3);
    assert_eq!(lines_with(&log, &["WARN", "redis is away"]), 1);
}

#[rate_limit(
    name = "unsettled",
    key = "{user}",
    rule(count = 100, per = "1h"),
    cost = 5,
    settle = |_: &Result<(), Rejection>| 30,
    limiter = limiter
)]
async fn settled(limiter: &Limiter, user: &str, lost: Option<&Server>) -> Result<(), Rejection> {
    let _ = (limiter, user);
    if let Some(server) = lost {
        // What is a list is no tally, so it cannot be settled.
        let key = server.ask::<Vec<String>>("KEYS *unsettled*").concat();
        server.ask::<()>(&format!("DEL {key}"));
        server.ask::<()>(&format!("RPUSH {key} foreign"));
    }
    Ok(())
}

/// This file has no other test that settles.
#[tokio::test]
async fn a_settlement_that_fails_is_a_warning_unless_the_one_before_has_failed() {
    let (log, _listening) = Log::listen();
    let server = Server::start();
    let limiter = server.limiter().await;
    let told = |level| lines_with(&log, &[level, "a call could not be settled and counts as its cost", "unsettled"]);
    for (lost, warnings, others) in [(true, 1, 0), (true, 1, 1), (false, 1, 1), (true, 2, 1)] {
        assert!(settled(&limiter, "zoe", lost.then_some(&server)).await.is_ok());
        assert_eq!((told(" WARN "), told("DEBUG ")), (warnings, others));
        if lost {
            server.ask::<()>("FLUSHALL");
        }
    }
    assert_eq!(lines_with(&log, &["could not be refunded"]), 0);
}

#[tokio::test]
async fn an_override_is_reported_by_every_process_that_adopts_it() {
    let (log, _listening) = Log::listen();
    let server = Server::start();
    for limiter in [Limiter::in_memory(), server.limiter().await] {
        limiter.override_policy("observed").rules([Rule::sliding_window(5, HOUR)]).allow_unknown().set().await.unwrap();
    }
    assert_eq!(lines_with(&log, &["INFO", "overridden", "policy=\"observed\""]), 2);
    let other = server.limiter().await;
    assert!(other.check(&policy(1), &canary()).await.unwrap().is_allowed());
    assert_eq!(lines_with(&log, &["INFO", "overridden", "policy=\"observed\""]), 3);
}

#[tokio::test(start_paused = true)]
async fn a_span_is_around_each_decision_and_knows_its_outcome() {
    let (log, _listening) = Log::listen();
    let (limiter, policy) = (Limiter::in_memory(), policy(1));
    for _ in 0..2 {
        let _ = limiter.check(&policy, &canary()).await.unwrap();
    }
    assert_eq!(
        lines_with(&log, &["decide{policy=\"observed\" outcome=duplicate rule=0 decided_by=backend}", "denied"]),
        1
    );
}

#[tokio::test]
async fn decisions_their_time_and_tallies_are_counted() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let limiter = Limiter::in_memory();
    let policy = Policy::builder("observed").rule(Rule::sliding_window(1, HOUR)).build().unwrap();
    for subject in ["a", "b", "c", "c", "c"] {
        let _ = limiter.check(&policy, &Subject::of(subject)).await.unwrap();
    }
    // A call that waits is one decision, however often it asks.
    let waiting = Policy::builder("waiting").rule(Rule::sliding_window(1, Duration::from_millis(5))).build().unwrap();
    for _ in 0..3 {
        assert!(limiter.acquire(&waiting, &canary()).await.unwrap().is_allowed());
    }
    let (mut counters, mut times) = (BTreeSet::new(), BTreeSet::new());
    for (key, _, _, value) in snapshots.snapshot().into_vec() {
        let key = key.key();
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        match (key.name(), value) {
            ("tallygate_decisions_total", DebugValue::Counter(count)) => {
                counters.insert(format!("{} {count}", labels.join(" ")));
            }
            ("tallygate_decision_seconds", DebugValue::Histogram(seconds)) => {
                assert!(seconds.iter().all(|seconds| seconds.0 >= 0.0));
                times.insert(format!("{} {}", labels.join(" "), seconds.len()));
            }
            ("tallygate_tallies", DebugValue::Gauge(tallies)) => {
                // Of other tests, too.
                assert!(labels.is_empty() && tallies.0 >= 4.0, "{tallies}");
            }
            ("tallygate_waiting_calls", DebugValue::Gauge(waiting)) => assert!(waiting.0.abs() < 0.5, "{waiting}"),
            ("tallygate_waits_refused_total", DebugValue::Counter(refused)) => assert_eq!(refused, 0),
            (other, value) => panic!("{other}: {value:?}"),
        }
    }
    let expected = [
        "policy=observed rule=0 outcome=limited decided_by=backend 2",
        "policy=observed rule=none outcome=allowed decided_by=backend 3",
        "policy=waiting rule=none outcome=allowed decided_by=backend 3",
    ];
    assert_eq!(counters.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    assert_eq!(times.into_iter().collect::<Vec<_>>(), ["policy=observed 5", "policy=waiting 3"]);
}

#[tokio::test]
async fn denials_from_the_cache_are_counted_apart_and_as_decisions_of_the_backend() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let server = Server::start();
    let builder = patient().denial_cache(Duration::from_secs(10));
    let (limiter, policy) = (connected(&builder, &server.url()).await, policy(1));
    let before = server.calls("evalsha");
    for _ in 0..5 {
        let _ = limiter.check(&policy, &canary()).await.unwrap();
    }
    let asked = u64::try_from(server.calls("evalsha") - before).unwrap();
    assert!(!limiter.check(&policy, &canary()).peek().await.unwrap().is_allowed());
    let mut counted: Vec<_> = Vec::new();
    for (key, _, _, value) in snapshots.snapshot().into_vec() {
        let labels: Vec<_> = key.key().labels().map(|label| label.value().to_owned()).collect();
        if let DebugValue::Counter(count) = value {
            counted.push((key.key().name().to_owned(), labels, count));
        }
    }
    counted.sort();
    let cached = counted.remove(0);
    assert_eq!((cached.0.as_str(), cached.1), ("tallygate_cached_denials_total", vec!["observed".to_owned()]));
    assert_eq!(asked + cached.2, 5, "each call asks Redis or the cache");
    assert!(counted.iter().all(|(name, labels, _)| name == "tallygate_decisions_total" && labels[3] == "backend"));
    assert_eq!(counted.iter().map(|(.., count)| count).sum::<u64>(), 5);
}

#[tokio::test]
async fn a_subject_that_comes_near_a_limit_is_reported_once_and_counted_by_policy_and_rule() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let (log, _listening) = Log::listen();
    let rules = [Rule::sliding_window(100, HOUR), Rule::fixed_window(5, HOUR).named("hourly")];
    let policy = Policy::builder("near").rules(rules).warn_at(0.8).build().unwrap();
    let limiter = Limiter::in_memory();
    for near in [0, 0, 0, 1, 1] {
        assert!(limiter.check(&policy, &canary()).await.unwrap().is_allowed());
        assert_eq!(lines_with(&log, &["DEBUG", "tallygate: near a limit", "policy=\"near\"", "rule=1"]), near);
    }
    assert_eq!(lines_with(&log, &["near a limit", CANARY]), 0);
    let warnings = snapshots.snapshot().into_vec().into_iter().filter_map(|(key, _, _, value)| {
        let labels = key.key().labels().map(|label| format!("{}={}", label.key(), label.value()));
        (key.key().name() == "tallygate_warnings_total").then(|| (labels.collect::<Vec<_>>().join(" "), value))
    });
    let expected = ("policy=near rule=hourly".to_owned(), DebugValue::Counter(1));
    assert_eq!(warnings.collect::<Vec<_>>(), [expected]);
}

#[rate_limit(name = "annotated", key = "user:{user}", limiter = limiter, rule(count = 1, per = "1h"))]
async fn annotated(limiter: &Limiter, user: &str) -> Result<(), Rejection> {
    Ok(())
}

fn shown(seen: &mut Vec<String>, value: &impl Debug) {
    seen.extend([format!("{value:?}"), format!("{value:#?}")]);
}

/// Does everything that callers can do with one subject.
async fn lifetime(limiter: &Limiter, seen: &mut Vec<String>) {
    let (policy, subject) = (policy(2), canary());
    shown(seen, &subject);
    shown(seen, &limiter.check(&policy, &subject).cost(2));
    shown(seen, &limiter.check(&policy, &subject).into_future());
    for cost in [1, 1, 3] {
        let decided = limiter.check(&policy, &subject).cost(cost).report().await;
        shown(seen, &decided);
        if let Ok(Decision::Denied(denial)) = decided {
            seen.push(Rejection::from(denial).to_string());
        }
        shown(seen, &limiter.check(&policy, &subject).wait(Duration::from_millis(3)).await);
    }
    for _ in 0..2 {
        if let Err(rejection) = annotated(limiter, CANARY).await {
            seen.push(rejection.to_string());
            shown(seen, &rejection);
        }
    }
    let overriding = || limiter.override_policy("observed").subject(&subject).allow_unknown();
    shown(seen, &overriding());
    let rules = [Rule::sliding_window(1, Duration::ZERO)];
    shown(seen, &overriding().rules(rules).set().await);
    let rules = [Rule::sliding_window(0, HOUR)];
    shown(seen, &overriding().rules(rules).set().await);
    shown(seen, &limiter.check(&policy, &subject).await);
    shown(seen, &limiter.overrides().await);
    shown(seen, limiter);
    shown(seen, &overriding().clear().await);
}

#[tokio::test]
async fn a_subject_is_seen_nowhere() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let (log, _listening) = Log::listen();
    let server = Server::start();
    server.ask::<()>(&format!("HSET tallygate:!overrides observed:user:{CANARY} unreadable !version x"));
    let away = format!("redis://127.0.0.1:{}/", free_port());
    let away = Limiter::builder().deadline(Duration::from_millis(50)).connect_lazy(&away).unwrap();
    let mut seen = Vec::new();
    for limiter in [Limiter::in_memory(), connected(&Limiter::builder(), &server.url()).await, away] {
        lifetime(&limiter, &mut seen).await;
    }
    assert!(log.lines().len() > 10 && seen.len() > 30);
    seen.extend(log.lines());
    seen.extend(snapshots.snapshot().into_vec().into_iter().map(|(key, ..)| format!("{key:?}")));
    let told: Vec<_> = seen.iter().filter(|text| text.contains(CANARY)).collect();
    assert!(told.is_empty(), "{told:#?}");
}

#[tokio::test]
async fn a_call_that_lacks_what_others_have_is_counted_apart_from_outages() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let (log, _listening) = Log::listen();
    let (limiter, policy) = (Limiter::in_memory(), policy(1));
    context::declare(["observed_user"]);
    for name in ["observed_user", "observed_usr"] {
        let call = async { limiter.check(&policy, &limiter.subject().context(name).build()).await };
        context::scope(Context::new(), call).await.unwrap_err();
    }
    let outcome =
        |key: &metrics::Key| key.labels().find(|label| label.key() == "outcome").map(|label| label.value().to_owned());
    let outcomes: BTreeSet<_> =
        snapshots.snapshot().into_vec().iter().filter_map(|(key, ..)| outcome(key.key())).collect();
    assert_eq!(outcomes, ["unavailable", "unidentified"].map(str::to_owned).into());
    assert_eq!(
        lines_with(
            &log,
            &["ERROR", "policy=\"observed\"", "`{@observed_usr}` is a value that the context does not have"]
        ),
        1
    );
    assert_eq!(lines_with(&log, &["INFO", "policy=\"observed\"", "this call lacks `{@observed_user}`"]), 1);
    assert_eq!(lines_with(&log, &["ERROR"]), 1);
}
