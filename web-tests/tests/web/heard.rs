//! What our own layer says, as our own client hears it.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use http::StatusCode;
use tallygate::client::{Heard, HeardLimit, HeardPause, ResponseReader};
use tallygate::testing::ManualClock;
use tallygate::web::{self, Draft, Items, Layer, Legacy};
use tallygate::{Limiter, Policy, Rejection, Rule, TokenBucket, rate_limit};
use tallygate_harness::clocked::new_clock;
use tallygate_web_tests::server::serve;
use tallygate_web_tests::{Answer, Client};

const SECOND: Duration = Duration::from_secs(1);
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

        // Nobody waits until a sliding window is empty.
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
async fn the_current_draft_says_when_more_is_left_and_an_older_one_spaces_calls_by_its_window() {
    for (fields, wait) in [(Draft::V11, MINUTE), (Draft::V7, MINUTE / 2)] {
        let client = client(Layer::new().fields(fields)).await;
        client.get("/").await;
        assert_eq!(heard(&client.get("/").await).wait(), Some(wait), "{fields:?}");
    }
}

/// Who waits as the fields say once nothing is left, or as a denial says, is admitted then and not before.
#[tokio::test]
async fn under_each_algorithm_the_fields_say_when_one_more_call_is_admitted() {
    let rules = [
        Rule::fixed_window(2, MINUTE),
        Rule::sliding_window(2, MINUTE),
        Rule::sliding_counter(2, MINUTE),
        Rule::from_bucket(2, TokenBucket::new(MINUTE)),
    ];
    let layer = || Layer::new().on_success(true);
    let fields = [
        layer(),
        layer().fields(Draft::V7),
        layer().fields(None).legacy(Legacy::XRateLimit),
        layer().fields(None).legacy(Legacy::XRateLimitByUnit),
    ];
    for (rule, fields) in rules.iter().flat_map(|rule| fields.iter().map(move |fields| (rule, fields.clone()))) {
        let (limiter, clock) = clocked();
        let policy = Policy::builder("each").rule(rule.clone()).build().unwrap();
        let limit = web::limit(&policy, "all").unwrap().limiter(&limiter);
        let router = Router::new().route("/", get(async || "done")).layer(limit);
        let client = Client::new(serve(router.layer(fields)).await);
        let first = heard(&client.get("/").await);
        assert_eq!((first.wait(), remaining(&first)), (None, Some(1)), "{rule}");
        clock.advance(Duration::from_secs(10));

        let last = heard(&client.get("/").await);
        assert_eq!((last.pause(), remaining(&last)), (None, Some(0)), "{rule}");
        let reset = last.limits()[0].reset().unwrap();
        assert!(last.wait().is_some_and(|wait| wait <= reset), "{rule}");
        let denied = heard(&client.get("/").await);
        assert_eq!(denied.pause().map(HeardPause::duration), Some(reset), "{rule}");

        // The fields have whole seconds.
        clock.advance(reset.saturating_sub(SECOND));
        let early = client.get("/").await;
        assert_eq!((early.status, early.retry_after()), (429, Some(1)), "{rule}");
        clock.advance(SECOND);
        assert_eq!(client.get("/").await.status, 200, "{rule}");
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
