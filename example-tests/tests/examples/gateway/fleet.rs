//! Several gateways, and their Redis.

use std::sync::Arc;

use reqwest::Response;
use serde_json::Value;
use tallygate_harness::server::Server as Redis;
use tallygate_harness::until::until_found;
use tokio::task::{JoinSet, spawn_blocking};

use super::{LONG, admitted, ask, error, field, read, start};
use crate::process::Service;

/// Sends the same request eight times to each gateway at once. Returns the answers, which go on, and the errors.
async fn flood(gateways: &[Arc<Service>; 2], user: &'static str, max_tokens: u64) -> (Vec<Response>, Vec<Value>) {
    let mut requests = JoinSet::new();
    for gateway in gateways.iter().cycle().take(16) {
        let gateway = Arc::clone(gateway);
        requests.spawn(async move { ask(&gateway, user, LONG, max_tokens).await });
    }
    let (mut answers, mut errors) = (Vec::new(), Vec::new());
    for answer in requests.join_all().await {
        if answer.status() == 200 { answers.push(admitted(answer)) } else { errors.push(error(answer, 429).await) }
    }
    (answers, errors)
}

#[tokio::test]
async fn two_gateways_on_one_redis_share_each_limit_exactly() {
    let redis = Redis::start();
    let gateways = [(); 2].map(|()| Arc::new(start(&redis.url())));

    let (answers, errors) = flood(&gateways, "carol", 20_000).await;
    assert_eq!(answers.len(), 2, "of 25,000 tokens each: {errors:?}");
    assert!(errors.iter().all(|error| error["type"] == "tokens"), "{errors:?}");

    let (answers, errors) = flood(&gateways, "dave", 5_000).await;
    assert_eq!(answers.len(), 3, "at a time: {errors:?}");
    assert!(errors.iter().all(|error| error["message"] == "wait until one of your answers has ended"), "{errors:?}");

    let mut number = 0;
    let mut gateways = gateways.iter().cycle();
    until_found("the requests of the plan are used", async || {
        let answer = ask(gateways.next().unwrap(), "bob", 1, 1).await;
        if answer.status() == 200 {
            assert_eq!(read(answer).await, 1);
            number += 1;
            return false;
        }
        error(answer, 429).await["message"].as_str().unwrap().starts_with("your plan has 20 requests")
    })
    .await;
    assert_eq!(number, 20);
}

#[tokio::test]
async fn while_redis_is_away_each_gateway_decides_by_half_of_the_limits_and_streams_go_on() {
    let mut redis = Redis::start();
    let gateways = [(); 2].map(|()| start(&redis.url()));
    let mut open = admitted(ask(&gateways[0], "dave", 50, 1_000).await);
    assert!(open.chunk().await.unwrap().is_some());

    redis.kill();
    for gateway in &gateways {
        for _ in 0..2 {
            let answer = ask(gateway, "alice", 1, 1).await;
            assert_eq!([field(&answer, "limit-requests"), field(&answer, "limit-tokens")], [2, 5_000]);
            assert_eq!(read(answer).await, 1);
        }
        let denied = error(ask(gateway, "alice", 1, 1).await, 429).await;
        assert!(denied["message"].as_str().unwrap().starts_with("your plan has 2 requests in 1m"), "{denied}");
        let too_much_for_now = error(ask(gateway, "alice", 1, 9_000).await, 503).await;
        assert_eq!(too_much_for_now["type"], "server_error");
    }
    let rest = open.text().await.unwrap();
    assert!(rest.ends_with("data: [DONE]\n\n"), "{rest}");

    redis.restart();
    for (gateway, remaining) in gateways.iter().zip([2, 1]) {
        until_found("Redis decides again, for both", async || {
            let answer = ask(gateway, "alice", 1, 1).await;
            answer.status() == 200
                && [field(&answer, "limit-requests"), field(&answer, "remaining-requests")] == [3, remaining]
        })
        .await;
    }
}

#[tokio::test]
async fn a_gateway_that_is_asked_to_stop_ends_its_streams_and_leaves_nothing_counted_that_was_not_used() {
    let redis = Redis::start();
    let [one, other] = [(); 2].map(|()| start(&redis.url()));
    let ask_long = async || admitted(ask(&one, "dave", 50, 15_000).await);
    let [mut first, mut second, mut third] = [ask_long().await, ask_long().await, ask_long().await];
    for answer in [&mut first, &mut second, &mut third] {
        assert!(answer.chunk().await.unwrap().is_some());
    }
    let stopped = spawn_blocking(|| one.stop());
    drop(third);
    for answer in [first, second] {
        assert!(answer.text().await.unwrap().ends_with("data: [DONE]\n\n"));
    }
    assert!(stopped.await.unwrap().success());

    // Without a moment for anything to settle: all places are free, and most tokens.
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(admitted(ask(&other, "dave", 1, 10_000).await));
    }
    let used = 60_000 - 10_001 - field(&answers[0], "remaining-tokens");
    assert!((2 * 100 + 51..=3 * 100).contains(&used), "{used}");
}
