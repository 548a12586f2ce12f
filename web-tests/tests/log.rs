//! Mistakes in the set-up of a server, which the log reports once for each process.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

use std::sync::LazyLock;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use http::StatusCode;
use tallygate::client;
use tallygate::web::{self, ClientIp, Layer};
use tallygate::{Limiter, Policy, Rejection, Rule, rate_limit};
use tallygate_harness::log::Log;
use tallygate_web_tests::Client;
use tallygate_web_tests::server::serve;

const MINUTE: Duration = Duration::from_secs(60);

fn behind_local_proxies() -> Layer {
    Layer::new().client_ip(ClientIp::behind(["127.0.0.1"]).unwrap())
}

/// The lines of that level with that text.
fn lines(log: &Log, level: &str, text: &str) -> usize {
    log.lines().iter().filter(|line| line.contains(level) && line.contains(text)).count()
}

#[tokio::test]
async fn a_layer_inside_of_a_limit_is_reported_and_one_outside_is_not() {
    let (log, _guard) = Log::listen();
    let policy = Policy::builder("api").rule(Rule::sliding_window(9, MINUTE)).build().unwrap();
    let limit = || web::limit(&policy, "{@ip}").unwrap().limiter(&Limiter::in_memory());
    let router = || Router::new().route("/", get(|| async { "well" }));
    let right = Client::new(serve(router().layer(limit()).layer(behind_local_proxies())).await);
    assert_eq!(right.get("/").await.status, 200);
    assert_eq!(lines(&log, "ERROR", "`web::Layer` is inside of `web::limit`"), 0);
    let wrong = Client::new(serve(router().layer(behind_local_proxies()).layer(limit())).await);
    for _ in 0..2 {
        assert_eq!(wrong.get("/").await.status, 200);
    }
    assert_eq!(lines(&log, "ERROR", "put `web::Layer` outside"), 1);
}

#[tokio::test]
async fn a_limit_around_a_request_twice_is_reported_once() {
    let (log, _guard) = Log::listen();
    let policy = Policy::builder("api").rule(Rule::sliding_window(9, MINUTE)).build().unwrap();
    let limit = web::limit(&policy, "{@ip}").unwrap().limiter(&Limiter::in_memory());
    let router = Router::new().route("/", get(|| async { "well" })).layer(limit.clone());
    let once = Client::new(serve(router.clone()).await);
    assert_eq!(once.get("/").await.status, 200);
    assert_eq!(lines(&log, "ERROR", "by the same rules and subject twice"), 0);
    let twice = Client::new(serve(router.layer(limit)).await);
    for _ in 0..2 {
        assert_eq!(twice.get("/").await.status, 200);
    }
    assert_eq!(lines(&log, "ERROR", "by the same rules and subject twice"), 1);
}

#[tokio::test]
async fn a_subject_without_a_key_is_reported_once_also_in_shadow() {
    let rules = Policy::builder("api").rule(Rule::sliding_window(1, MINUTE));
    let policy = rules.rule_on("network", Rule::sliding_window(2, MINUTE)).build().unwrap();
    let limit = || web::limit(&policy, "{@ip}").unwrap().limiter(&Limiter::in_memory());
    let complete = || limit().subject("network", "{@ip:subnet}").unwrap();
    for (limit, status, reports) in [(limit(), 500, 1), (limit().shadow(), 200, 1), (complete(), 429, 0)] {
        let (log, _guard) = Log::listen();
        let client = Client::new(serve(Router::new().route("/", get(|| async { "well" })).layer(limit)).await);
        client.get("/").await;
        assert_eq!(client.get("/").await.status, status);
        assert_eq!(
            lines(&log, "ERROR", "no key for a subject of its policy; add `.subject(\"network\", …)?`"),
            reports
        );
    }
}

#[rate_limit(key = "{@user}", rule(count = 9, per = "60s"))]
async fn report() -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test]
async fn a_value_that_is_missing_is_reported_once_with_the_name_of_the_function() {
    let (log, _guard) = Log::listen();
    let client = Client::new(serve(Router::new().route("/", get(report)).layer(Layer::new())).await);
    for _ in 0..3 {
        let answer = client.get("/").await;
        assert_eq!((answer.status, answer.retry_after()), (500, None));
    }
    assert_eq!(lines(&log, "ERROR", "log.report"), 1);
    assert_eq!(lines(&log, "ERROR", "`{@user}` is a value that the context does not have"), 1);
}

static SHARED: LazyLock<Policy> = LazyLock::new(|| {
    Policy::builder("shared").rule(Rule::sliding_window(9, MINUTE)).build().expect("the rules are sound")
});

#[rate_limit(policy = SHARED, key = "{@user}")]
async fn upload() -> Result<(), Rejection> {
    Ok(())
}

#[rate_limit(policy = SHARED, key = "{@user}")]
fn download() -> impl Future<Output = Result<(), Rejection>> {
    async { Ok(()) }
}

#[tokio::test]
async fn a_value_that_several_functions_of_a_policy_miss_is_reported_with_the_place_of_each() {
    let (log, _guard) = Log::listen();
    let routes = Router::new().route("/upload", get(upload)).route("/download", get(download));
    let client = Client::new(serve(routes.layer(Layer::new())).await);
    for path in ["/upload", "/download", "/upload", "/download"] {
        let answer = client.get(path).await;
        assert_eq!((answer.status, answer.retry_after()), (500, None));
        assert!(!answer.body.contains(file!()), "{}", answer.body);
    }
    let place = format!("the limit is at {}:", file!());
    assert_eq!((lines(&log, "ERROR", "policy=\"shared\""), lines(&log, "ERROR", &place)), (2, 2), "{:?}", log.lines());
}

#[tokio::test]
async fn a_handler_that_needs_a_client_which_is_not_known_is_reported() {
    let (log, _guard) = Log::listen();
    let whoami = async |client: ClientIp| client.to_string();
    let client = Client::new(serve(Router::new().route("/", get(whoami))).await);
    for _ in 0..2 {
        assert_eq!(client.get("/").await.status, 500);
    }
    assert_eq!(lines(&log, "ERROR", "the client of the request is not known; add `web::Layer` to the router"), 1);
}

#[rate_limit(name = "mail", rule(count = 1, per = "60s", message = "wait, {@mail}"), limiter = limiter)]
async fn send_mail(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[rate_limit(name = "mail", key = "{@mail}", rule(count = 1, per = "60s"), limiter = limiter)]
async fn send_mail_to(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[tokio::test]
async fn a_value_that_is_missing_in_a_message_alone_is_a_warning() {
    let (log, _guard) = Log::listen();
    let limiter = Limiter::in_memory();
    for _ in 0..3 {
        _ = send_mail(&limiter).await;
    }
    assert_eq!(lines(&log, "WARN", "a message shows nothing in place of a value"), 1);
    assert_eq!(lines(&log, "ERROR", "calls are rejected"), 0);
    assert!(send_mail_to(&limiter).await.is_err());
    assert_eq!(
        lines(&log, "ERROR", "calls are rejected, as the program makes them in a way that cannot be decided"),
        1
    );
}

#[tokio::test]
async fn a_pace_that_hears_denials_and_cannot_pause_is_reported_once() {
    let (log, _guard) = Log::listen();
    let partner = serve(Router::new().route("/", get(async || (StatusCode::TOO_MANY_REQUESTS, "later")))).await;
    let policy = Policy::builder("deaf").rule(Rule::sliding_window(9, MINUTE)).build().unwrap();
    let pace = client::pace(&policy, "{@host}").unwrap().limiter(&Limiter::in_memory());
    let http = reqwest_middleware::ClientBuilder::new(reqwest::Client::new()).with(pace).build();
    for _ in 0..3 {
        assert_eq!(http.get(format!("http://{partner}/")).send().await.unwrap().status(), 429);
    }
    assert_eq!(lines(&log, "WARN", "the other side denies calls, and the pace goes on"), 1);
    assert_eq!(lines(&log, "WARN", "policy=\"deaf\""), 1);
}
