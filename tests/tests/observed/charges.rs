//! The amounts that calls are charged in units are counted, and so is what is settled of them.

use std::collections::HashSet;
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tallygate::{Limiter, Policy, Rule, Subject};
use tallygate_harness::server::{Server, ask, connected, patient};

const HOUR: Duration = Duration::from_secs(3_600);

/// Returns what was counted since the last question: unit, change, amount.
fn charged(snapshots: &Snapshotter) -> Vec<String> {
    let mut charged = Vec::new();
    for (key, _, _, value) in snapshots.snapshot().into_vec() {
        let labels: Vec<_> = key.key().labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        if let DebugValue::Counter(amount) = value
            && key.key().name() == "tallygate_charged_units_total"
        {
            charged.push(format!("{} {amount}", labels.join(" ")));
        }
    }
    charged.sort();
    charged
}

#[tokio::test]
async fn what_calls_are_charged_in_each_unit_is_counted_once_and_what_they_did_not_use_is_removed() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let server = Server::start();
    let tokens = |count| Rule::sliding_window(count, HOUR).counting("tokens");
    let policy = Policy::builder("chat")
        .rule(Rule::sliding_window(60, HOUR))
        .rule(tokens(1_000))
        .rule_on("organisation", tokens(9_000))
        .rule(Rule::fixed_window(500, HOUR).counting("bytes"))
        .rule(tokens(900).shadow())
        .build()
        .unwrap();
    let (alice, acme) = (Subject::of("alice"), Subject::of("acme"));
    for limiter in [Limiter::in_memory(), connected(&patient(), &server.url()).await] {
        let call =
            |cost| limiter.check(&policy, &alice).subject("organisation", &acme).cost_of("tokens", cost).refundable();
        let admitted = async |cost| call(cost).await.unwrap().into_result().unwrap();
        admitted(90).await.settle_units(&[("tokens", 120), ("bytes", 7)]).await.unwrap();
        admitted(50).await.settle_units(&[("tokens", 20)]).await.unwrap();
        admitted(10).await.refund().await.unwrap();
        admitted(5).await;
        assert!(!call(1_000).await.unwrap().is_allowed());
        assert!(call(1).peek().await.unwrap().is_allowed());
        let expected = [
            "policy=chat unit=bytes change=added 7",
            "policy=chat unit=bytes change=charged 0",
            "policy=chat unit=bytes change=removed 0",
            "policy=chat unit=tokens change=added 30",
            "policy=chat unit=tokens change=charged 155",
            "policy=chat unit=tokens change=removed 40",
        ];
        assert_eq!(charged(&snapshots), expected);
    }
}

#[tokio::test]
async fn what_is_settled_counts_although_what_is_charged_afterwards_fails() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let server = Server::start();
    let mut connection = server.connection();
    let limiter = connected(&patient(), &server.url()).await;
    let policy = Policy::builder("chat")
        .rule(Rule::sliding_window(1_000, HOUR).counting("tokens"))
        .rule(Rule::sliding_window(500, HOUR).counting("bytes"))
        .build()
        .unwrap();
    let alice = Subject::of("alice");
    let admitted = async || {
        let check = limiter.check(&policy, &alice).cost_of("tokens", 90).refundable();
        check.await.unwrap().into_result().unwrap()
    };
    let mut keys = || -> HashSet<String> { ask(&mut connection, "KEYS *:chat=*") };
    let (permit, before) = (admitted().await, keys());
    permit.settle_units(&[("bytes", 7)]).await.unwrap();
    let bytes = keys().difference(&before).next().cloned().expect("the bytes are counted now");
    let permit = admitted().await;
    let _ = charged(&snapshots);

    // Something else has taken the key of the bytes.
    let _: i64 = ask(&mut connection, &format!("DEL {bytes}"));
    let _: i64 = ask(&mut connection, &format!("RPUSH {bytes} x"));
    permit.settle_units(&[("tokens", 20), ("bytes", 5)]).await.unwrap_err();
    let expected = [
        "policy=chat unit=bytes change=added 0",
        "policy=chat unit=bytes change=charged 0",
        "policy=chat unit=bytes change=removed 0",
        "policy=chat unit=tokens change=added 0",
        "policy=chat unit=tokens change=charged 0",
        "policy=chat unit=tokens change=removed 70",
    ];
    assert_eq!(charged(&snapshots), expected);
    let _: i64 = ask(&mut connection, &format!("DEL {bytes}"));
    assert_eq!(limiter.peek(&policy, &alice).await.unwrap().report()[0].used(), 90 + 20);
}

#[tokio::test]
async fn a_call_that_nobody_counts_and_a_policy_without_units_charge_no_unit() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let (limiter, alice) = (Limiter::in_memory(), Subject::of("alice"));
    let calls = Policy::builder("calls").rule(Rule::sliding_window(9, HOUR)).build().unwrap();
    assert!(limiter.check(&calls, &alice).cost(3).await.unwrap().is_allowed());
    let tokens = Rule::sliding_window(9, HOUR).counting("tokens");
    let chat = Policy::builder("chat").rule(tokens).shadow().build().unwrap();
    assert!(limiter.check(&chat, &alice).cost_of("tokens", 10).await.unwrap().is_allowed());
    assert_eq!(charged(&snapshots), [""; 0]);
    assert!(limiter.check(&chat, &alice).cost_of("tokens", 4).await.unwrap().is_allowed());
    assert_eq!(charged(&snapshots)[1], "policy=chat unit=tokens change=charged 4");
}
