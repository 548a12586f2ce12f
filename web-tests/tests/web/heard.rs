//! What our own layer says, as our own client hears it.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use http::StatusCode;
use tallygate::client::{Heard, HeardLimit, ResponseReader};
use tallygate::testing::ManualClock;
use tallygate::web::{self, Draft, Items, Layer, Legacy};
use tallygate::{Limiter, Policy, Rejection, Rule, TokenBucket, rate_limit};
use tallygate_harness::clocked::new_clock;
use tallygate_web_tests::server::serve;
use tallygate_web_tests::{Answer, Client};

const MINUTE: Duration = Duration::from_secs(60);

#[rate_limit(
    name = "heard",
    rule(count = 2, per = "60s"),
    rule(count = 1_000, per = "1h", unit = "tokens"),
    unit("tokens", cost = 300),
    limiter = limiter
)]
async fn limited(State(limiter): State<Limiter>) -> Result<&'static str, Rejection> {
    let _ = limiter;
    Ok("done")
}

#[rate_limit(name = "code", rule(count = 2, per = "60s"), prevent_duplicate, limiter = limiter)]
async fn code(State(limiter): State<Limiter>) -> Result<&'static str, Rejection> {
    let _ = limiter;
    Ok("sent")
}

async fn client(layer: Layer) -> Client {
    let router = Router::new().route("/", get(limited)).route("/code", get(code));
    Client::new(serve(router.layer(layer.on_success(true)).with_state(Limiter::in_memory())).await)
}

fn heard(answer: &Answer) -> Heard {
    ResponseReader::new().read(StatusCode::from_u16(answer.status).unwrap(), &answer.headers)
}

/// How much is left of the limit on requests.
fn remaining(heard: &Heard) -> Option<u64> {
    heard.limits().iter().find(|limit| limit.unit() == "requests").and_then(HeardLimit::remaining)
}

#[tokio::test]
async fn every_kind_of_fields_is_heard_as_it_was_meant() {
    let only = |legacy| Layer::new().fields(None).legacy(legacy);
    for (fields, layer, units) in [
        ("draft 11", Layer::new(), 2),
        ("one item of draft 11", Layer::new().items(Items::Tightest), 1),
        ("draft 7", Layer::new().fields(Draft::V7), 1),
        ("X-RateLimit", only(Legacy::XRateLimit), 1),
        ("X-RateLimit by unit", only(Legacy::XRateLimitByUnit), 2),
        ("both", Layer::new().legacy(Legacy::XRateLimit), 3),
    ] {
        let client = client(layer).await;
        let first = heard(&client.get("/").await);
        assert_eq!((first.wait(), remaining(&first), first.limits().len()), (None, Some(1), units), "{fields}");
        let request = first.limits().iter().find(|limit| limit.unit() == "requests").unwrap();
        assert_eq!(request.limit(), Some(2), "{fields}");
        assert!(request.reset().is_some_and(|reset| reset <= MINUTE), "{fields}");
        for tokens in first.limits().iter().filter(|limit| limit.unit() == "tokens") {
            assert_eq!((tokens.limit(), tokens.remaining()), (Some(1_000), Some(700)), "{fields}");
        }

        // A sliding window that is used up is soon open again: nobody waits until it is empty.
        let last = heard(&client.get("/").await);
        assert_eq!((last.pause(), remaining(&last)), (None, Some(0)), "{fields}");
        assert!(last.wait().is_some_and(|wait| wait <= MINUTE), "{fields}");

        let answer = client.get("/").await;
        let denied = heard(&answer);
        let pause = denied.pause().unwrap();
        assert_eq!((answer.status, pause.field()), (429, Some("retry-after")), "{fields}");
        assert_eq!(Some(pause.duration().as_secs()), answer.retry_after(), "{fields}");
    }
}

#[tokio::test]
async fn a_draft_that_names_windows_spaces_calls_by_them() {
    for fields in [Draft::V11, Draft::V7] {
        let client = client(Layer::new().fields(fields)).await;
        client.get("/").await;
        assert_eq!(heard(&client.get("/").await).wait(), Some(MINUTE / 2), "{fields:?}");
    }
}

/// A sliding window and a sliding counter are open again before their reset, but the fields do not say when. Nobody who waits for what
/// a denial says is denied again.
#[tokio::test]
async fn under_each_algorithm_who_waits_as_a_denial_says_is_admitted() {
    let rules = [
        Rule::sliding_window(2, MINUTE),
        Rule::sliding_counter(2, MINUTE),
        Rule::fixed_window(2, MINUTE),
        Rule::from_bucket(2, TokenBucket::new(MINUTE)),
    ];
    for (rule, draft) in rules.iter().flat_map(|rule| [(rule, Draft::V11), (rule, Draft::V7)]) {
        let (limiter, clock) = clocked();
        let policy = Policy::builder("each").rule(rule.clone()).build().unwrap();
        let limit = web::limit(&policy, "all").unwrap().limiter(&limiter);
        let router = Router::new().route("/", get(async || "done")).layer(limit);
        let client = Client::new(serve(router.layer(Layer::new().fields(draft).on_success(true))).await);
        let first = heard(&client.get("/").await);
        assert_eq!((first.wait(), remaining(&first)), (None, Some(1)), "{rule} {draft:?}");
        let last = heard(&client.get("/").await);
        let reset = last.limits()[0].reset();
        assert_eq!((last.pause(), remaining(&last)), (None, Some(0)), "{rule} {draft:?}");
        assert!(last.wait().is_some() && last.wait() <= reset && reset <= Some(2 * MINUTE), "{rule} {draft:?}");

        let denied = heard(&client.get("/").await);
        let pause = denied.pause().unwrap().duration();
        assert!(Some(pause) <= reset, "{rule} {draft:?}");
        clock.advance(pause);
        assert_eq!(client.get("/").await.status, 200, "{rule} {draft:?}");
    }
}

fn clocked() -> (Limiter, ManualClock) {
    let clock = new_clock();
    (Limiter::builder().clock(&clock).build_in_memory().unwrap(), clock)
}

#[tokio::test]
async fn a_function_that_prevents_duplicates_holds_back_no_other_call() {
    let client = client(Layer::new()).await;
    let sent = heard(&client.get("/code").await);
    assert_eq!((sent.wait(), remaining(&sent)), (None, Some(1)));
    assert_eq!(client.get("/code").await.status, 409);
}
