//! The fields of responses.

use std::time::{Duration, SystemTime};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use tallygate::testing::ManualClock;
use tallygate::web::{Draft, Items, Layer, Legacy};
use tallygate::{Limiter, Rejection, RuleStatus, rate_limit};
use tallygate_harness::server::{Server as Redis, connected, patient};
use tallygate_harness::until::until_found;
use tallygate_web_tests::server::serve;
use tallygate_web_tests::{Client, Http, LimitItem, PolicyItem};
use tokio::task::JoinSet;

#[rate_limit(
    name = "captcha",
    key = "138",
    rule(count = 3, per = "60s"),
    rule(count = 100, per = "1h", name = "hourly"),
    limiter = limiter,
    check_fn = captcha_limit
)]
async fn captcha(State(limiter): State<Limiter>) -> Result<&'static str, Rejection> {
    let _ = limiter;
    Ok("sent")
}

fn router(limiter: &Limiter, layer: Layer) -> Router {
    Router::new().route("/captcha", get(captcha)).layer(layer).with_state(limiter.clone())
}

fn policies() -> [PolicyItem; 2] {
    [
        PolicyItem { name: "captcha.1m".into(), q: 3, w: Some(60) },
        PolicyItem { name: "captcha.hourly".into(), q: 100, w: Some(3_600) },
    ]
}

/// Where the limits stand by the store.
async fn stored(limiter: &Limiter) -> Vec<(u64, Duration)> {
    let decision = captcha_limit(State(limiter.clone())).peek().report().await.unwrap();
    decision.report().iter().map(|status| (status.remaining(), status.reset())).collect()
}

#[tokio::test]
async fn fields_agree_with_the_store_by_both_versions_of_http() {
    for (http, version) in [(Http::One, reqwest::Version::HTTP_11), (Http::Two, reqwest::Version::HTTP_2)] {
        let limiter = Limiter::in_memory();
        let client = Client::by(http, serve(router(&limiter, Layer::new().on_success(true))).await);
        for remaining in [2, 1, 0] {
            let answer = client.get("/captcha").await;
            assert_eq!((answer.status, answer.version, answer.body.as_str()), (200, version, "sent"));
            assert_eq!((answer.policies().as_slice(), answer.retry_after()), (&policies()[..], None));
            let (limits, stored) = (answer.limits(), stored(&limiter).await);
            assert_eq!((limits.len(), stored.len()), (2, 2));
            for ((item, (stored_remaining, reset)), policy) in limits.iter().zip(&stored).zip(policies()) {
                assert_eq!(item.r, *stored_remaining);
                // The store was asked later.
                let window = item.t.unwrap();
                assert!(window >= reset.as_secs() && Some(window) <= policy.w, "{item:?} and {reset:?}");
            }
            assert_eq!(stored[0].0, remaining);
        }
        let answer = client.get("/captcha").await;
        assert_eq!((answer.status, answer.policies()), (429, policies().into()));
        let [minute, hourly] = answer.limits().try_into().unwrap();
        assert_eq!(
            (minute.r, minute.t, hourly),
            (0, answer.retry_after(), LimitItem { name: "captcha.hourly".into(), r: 97, t: None })
        );
        assert_eq!(answer.problem().violated_policies, [minute.name]);
    }
}

#[rate_limit(name = "busy", rule(count = 1000, per = "60s"), prefetch = "1s", limiter = limiter)]
async fn busy(State(limiter): State<Limiter>) -> Result<&'static str, Rejection> {
    let _ = limiter;
    Ok("done")
}

#[tokio::test]
async fn fields_of_calls_that_are_taken_ahead_count_no_part_twice() {
    let redis = Redis::start();
    let limiter = connected(&patient(), &redis.url()).await;
    let router = Router::new().route("/busy", get(busy)).layer(Layer::new().on_success(true)).with_state(limiter);
    let client = Client::new(serve(router).await);
    let calls = 200;
    let asked = || u64::try_from(redis.calls("evalsha")).unwrap();
    for used in 1..=calls {
        let answer = client.get("/busy").await;
        let [item] = answer.limits().try_into().unwrap();
        // A call that asks Redis while a part is on its way is not in the answer for the part.
        let asked = asked();
        assert!(item.name == "busy.1m" && item.r <= 1_000 - used + asked, "{item:?} after {used}, {asked} by Redis");
    }
    let asked = asked();
    assert!(asked < calls, "{asked} of {calls} calls asked Redis");
    let mut used = calls;
    until_found("the process knows what is left", async || {
        used += 1;
        client.get("/busy").await.limits()[0].r == 1_000 - used
    })
    .await;
}

#[rate_limit(
    name = "tokens",
    key = "138",
    rule(count = 100, per = "60s"),
    prevent_duplicate(per = "5s"),
    cost = 30,
    settle = |_: &Result<&'static str, Rejection>| 10,
    limiter = limiter,
    check_fn = tokens_limit
)]
async fn tokens(State(limiter): State<Limiter>) -> Result<&'static str, Rejection> {
    let _ = limiter;
    Ok("written")
}

#[tokio::test]
async fn the_fields_of_a_settled_call_agree_with_the_store() {
    let limiter = Limiter::in_memory();
    let router = Router::new().route("/tokens", get(tokens)).layer(Layer::new().on_success(true));
    let answer = Client::new(serve(router.with_state(limiter.clone())).await).get("/tokens").await;
    let decision = tokens_limit(State(limiter)).peek().report().await.unwrap();
    let mut stored: Vec<_> = decision.report().iter().map(RuleStatus::remaining).collect();
    stored.sort_unstable();
    assert_eq!(stored, [0, 90], "the call stays one call");
    // That it would be a duplicate says nothing of other calls.
    assert_eq!(answer.limits().iter().map(|item| item.r).collect::<Vec<_>>(), [90]);
}

#[tokio::test]
async fn without_fields_on_success_only_denials_have_them() {
    let limiter = Limiter::in_memory();
    let client = Client::new(serve(router(&limiter, Layer::new())).await);
    for _ in 0..3 {
        let answer = client.get("/captcha").await;
        assert_eq!((answer.status, answer.header("ratelimit"), answer.header("ratelimit-policy")), (200, None, None));
    }
    let answer = client.get("/captcha").await;
    assert_eq!((answer.status, answer.limits().len(), answer.policies().len()), (429, 1, 1));
}

#[tokio::test]
async fn older_fields_can_take_the_place_of_the_draft_or_stand_beside_it() {
    let limiter = Limiter::in_memory();
    let layer = Layer::new().on_success(true).fields(Draft::V7).legacy(Legacy::XRateLimit);
    let answer = Client::new(serve(router(&limiter, layer)).await).get("/captcha").await;
    assert_eq!(answer.header("ratelimit-policy"), Some("3;w=60, 100;w=3600"));
    assert_eq!(answer.header("ratelimit"), Some("limit=3, remaining=2, reset=60"));
    let legacy = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"].map(|name| answer.header(name));
    assert_eq!(legacy, [Some("3"), Some("2"), Some("60")]);

    let layer = Layer::new().on_success(true).fields(None).items(Items::Tightest);
    let answer = Client::new(serve(router(&limiter, layer)).await).get("/captcha").await;
    assert!(answer.headers.keys().all(|name| !name.as_str().contains("ratelimit")), "{:?}", answer.headers);
}

#[rate_limit(
    name = "chat",
    key = "138",
    unit("tokens", cost = 400),
    rule(count = 3, per = "60s"),
    rule(count = 1_000, per = "60s", unit = "tokens"),
    limiter = limiter
)]
async fn chat(State(limiter): State<Limiter>) -> Result<&'static str, Rejection> {
    let _ = limiter;
    Ok("said")
}

#[tokio::test]
async fn each_unit_has_its_fields_and_a_denial_names_the_unit_that_is_used_up() {
    // Its time stands still.
    let limiter = Limiter::builder().clock(&ManualClock::new(SystemTime::now())).build_in_memory().unwrap();
    let layer = Layer::new().on_success(true).legacy(Legacy::XRateLimitByUnit);
    let router = Router::new().route("/chat", get(chat)).layer(layer).with_state(limiter);
    let client = Client::new(serve(router).await);
    for (calls, tokens, status) in [("2", "600", 200), ("1", "200", 200), ("1", "200", 429)] {
        let answer = client.get("/chat").await;
        assert_eq!(answer.status, status);
        let of_unit =
            |unit: &str| ["limit", "remaining", "reset"].map(|of| answer.header(&format!("x-ratelimit-{of}-{unit}")));
        assert_eq!(of_unit("requests"), [Some("3"), Some(calls), Some("1m0s")]);
        assert_eq!(of_unit("tokens"), [Some("1000"), Some(tokens), Some("1m0s")]);
        let draft = r#""chat.1m";q=3;w=60, "chat.tokens.1m";q=1000;qu="tokens";w=60"#;
        assert_eq!(answer.header("ratelimit-policy"), Some(draft));
        if status == 429 {
            assert_eq!(answer.problem().violated_policies, ["chat.tokens.1m"]);
            assert_eq!(answer.problem().detail, "too many tokens: at most 1,000 per 1m; try again in 1m");
            assert!(answer.body.contains(r#""unit":"tokens""#), "{}", answer.body);
        }
    }
}

#[tokio::test]
async fn the_tightest_rule_alone_can_be_listed() {
    let limiter = Limiter::in_memory();
    let layer = Layer::new().on_success(true).items(Items::Tightest);
    let answer = Client::new(serve(router(&limiter, layer)).await).get("/captcha").await;
    assert_eq!(answer.limits(), [LimitItem { name: "captcha.1m".into(), r: 2, t: Some(60) }]);
}

#[rate_limit(
    name = "code",
    key = "138",
    rule(count = 1, per = "60s"),
    prevent_duplicate(per = "5s"),
    limiter = limiter
)]
async fn code(State(limiter): State<Limiter>) -> Result<&'static str, Rejection> {
    let _ = limiter;
    Ok("sent")
}

#[tokio::test]
async fn no_field_invites_a_client_before_the_wait_of_its_duplicate_is_over() {
    for is_reported in [true, false] {
        // Its time stands still.
        let limiter = Limiter::builder().clock(&ManualClock::new(SystemTime::now())).build_in_memory().unwrap();
        let layer = Layer::new().on_success(is_reported).legacy(Legacy::XRateLimit);
        let router = Router::new().route("/code", get(code)).layer(layer).with_state(limiter);
        let client = Client::new(serve(router).await);
        assert_eq!(client.get("/code").await.status, 200);
        let answer = client.get("/code").await;
        assert_eq!(answer.status, 409);
        assert_eq!(answer.retry_after(), Some(60));
        assert_eq!(answer.header("x-ratelimit-reset"), is_reported.then_some("60"));
        let windows: Vec<_> = answer.limits().into_iter().map(|item| (item.name, item.t)).collect();
        if is_reported {
            assert_eq!(windows, [("code.duplicate".to_owned(), Some(5)), ("code.1m".to_owned(), Some(60))]);
        } else {
            assert_eq!(windows, [("code.duplicate".to_owned(), None)]);
        }
    }
}

async fn ignores(limiter: State<Limiter>) -> &'static str {
    if captcha(limiter).await.is_ok() { "sent" } else { "not sent, but never mind" }
}

async fn status_alone(limiter: State<Limiter>) -> Result<Json<u8>, StatusCode> {
    captcha(limiter).await?;
    Ok(Json(7))
}

async fn text_alone(limiter: State<Limiter>) -> Result<Json<u8>, (StatusCode, String)> {
    captcha(limiter).await?;
    Ok(Json(7))
}

/// Sends from a task that it spawns, whose context is the request's.
async fn spawns(limiter: State<Limiter>) -> String {
    let sent = tokio::spawn(tallygate::context::carry(captcha(limiter))).await.unwrap();
    sent.is_ok().to_string()
}

fn routes(limiter: &Limiter) -> Router {
    let routes = Router::new().route("/ignores", get(ignores)).route("/spawns", get(spawns));
    let routes = routes.route("/status", get(status_alone)).route("/text", get(text_alone));
    routes.layer(Layer::new().on_success(true)).with_state(limiter.clone())
}

#[tokio::test]
async fn a_denial_that_the_handler_ignores_is_reported() {
    let limiter = Limiter::in_memory();
    let client = Client::new(serve(routes(&limiter)).await);
    for _ in 0..3 {
        assert_eq!(client.get("/ignores").await.body, "sent");
    }
    let answer = client.get("/ignores").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "not sent, but never mind"));
    assert_eq!((answer.limits()[0].r, answer.limits()[1].r, answer.retry_after()), (0, 97, None));
}

#[tokio::test]
async fn a_decision_in_a_task_that_carries_the_context_is_reported() {
    let limiter = Limiter::in_memory();
    let answer = Client::new(serve(routes(&limiter)).await).get("/spawns").await;
    assert_eq!((answer.body.as_str(), answer.limits()[0].r), ("true", 2));
}

#[tokio::test]
async fn a_handler_that_returns_a_status_gets_the_wait_from_the_layer() {
    for path in ["/status", "/text"] {
        let limiter = Limiter::in_memory();
        let client = Client::new(serve(routes(&limiter)).await);
        for _ in 0..3 {
            assert_eq!((client.get(path).await.status, client.get("/none").await.status), (200, 404));
        }
        let answer = client.get(path).await;
        assert_eq!((answer.status, answer.limits()[0].t), (429, answer.retry_after()));
        assert!(answer.retry_after().is_some());
    }
}

#[tokio::test]
async fn fifty_connections_admit_exactly_the_count() {
    let limiter = Limiter::in_memory();
    let server = serve(router(&limiter, Layer::new().on_success(true))).await;
    let mut answers = JoinSet::new();
    for number in 0..50 {
        let client = Client::by(if number % 2 == 0 { Http::One } else { Http::Two }, server);
        answers.spawn(async move { client.get("/captcha").await });
    }
    let answers = answers.join_all().await;
    let admitted = answers.iter().filter(|answer| answer.status == 200);
    let mut remaining: Vec<_> = admitted.map(|answer| answer.limits()[0].r).collect();
    remaining.sort_unstable();
    assert_eq!(remaining, [0, 1, 2]);
    assert!(answers.iter().filter(|answer| answer.status != 200).all(|answer| answer.limits()[0].r == 0));
}

#[tokio::test]
async fn nested_layers_write_each_field_once_with_all_that_was_decided() {
    let limiter = Limiter::in_memory();
    let inner = router(&limiter, Layer::new().fields(Draft::V11));
    let outer = Router::new().nest("/api", inner).layer(Layer::new().on_success(true));
    let answer = Client::new(serve(outer).await).get("/api/captcha").await;
    assert_eq!((answer.status, answer.limits().len()), (200, 2));
}
