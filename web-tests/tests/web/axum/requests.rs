//! What a limit around a router does with single requests: what they weigh, which count, and how they are rejected.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::routing::{get, post};
use http::{HeaderValue, Response};
use tallygate::web::{self, Limit};
use tallygate::{BackendError, Limiter, Policy, Rejection, Rule, Subject};
use tallygate_web_tests::Client;
use tallygate_web_tests::server::serve;
use tower::ServiceExt as _;

const MINUTE: Duration = Duration::from_secs(60);

fn policy(count: u64) -> Policy {
    Policy::builder("api").rule(Rule::sliding_window(count, MINUTE)).build().unwrap()
}

fn limit(count: u64, key: &str) -> Limit {
    web::limit(&policy(count), key).unwrap().limiter(&Limiter::in_memory())
}

/// Answers with the status that the client asks for.
async fn answer(headers: HeaderMap) -> StatusCode {
    let status = headers.get("x-status").and_then(|status| status.to_str().ok());
    status.and_then(|status| status.parse().ok()).unwrap_or(StatusCode::OK)
}

async fn client(limit: Limit) -> Client {
    Client::new(serve(Router::new().route("/", get(answer).post(answer)).layer(limit)).await)
}

async fn statuses(client: &Client, wanted: &[&str]) -> Vec<u16> {
    let mut statuses = Vec::new();
    for status in wanted {
        statuses.push(client.get_with("/", &[("x-status", status)]).await.status);
    }
    statuses
}

#[tokio::test]
async fn only_failures_count_where_others_are_refunded() {
    let client = client(limit(2, "{@ip}").refund_if(|status| status != StatusCode::UNAUTHORIZED)).await;
    assert_eq!(statuses(&client, &["200", "200", "401", "500", "200", "401"]).await, [200, 200, 401, 500, 200, 401]);
    assert_eq!(statuses(&client, &["200", "401"]).await, [429, 429]);
}

#[tokio::test]
async fn only_successes_count_where_failures_are_refunded() {
    let client = client(limit(1, "{@ip}").refund_if(|status| !status.is_success())).await;
    assert_eq!(statuses(&client, &["404", "503", "200", "404"]).await, [404, 503, 200, 429]);
}

#[tokio::test]
async fn a_service_that_fails_without_a_response_is_a_failure() {
    for (refunds_failures, expected) in [(true, [true, true]), (false, [true, false])] {
        let limit = limit(1, "all").refund_if(move |status| status.is_server_error() == refunds_failures);
        let failing = tower::service_fn(async |_: Request| Err::<Response<Body>, _>(std::io::Error::other("gone")));
        let service = tower::Layer::layer(&limit, failing);
        let mut failed = Vec::new();
        for _ in 0..2 {
            failed.push(service.clone().oneshot(Request::new(Body::empty())).await.is_err());
        }
        assert_eq!(failed, expected, "refunds failures: {refunds_failures}");
    }
}

#[tokio::test]
async fn fields_of_a_refunded_request_show_what_is_left_then() {
    let limit = limit(2, "{@ip}").refund_if(|status| status.is_success());
    let router = Router::new().route("/", get(answer)).layer(limit).layer(web::Layer::new().on_success(true));
    let client = Client::new(serve(router).await);
    assert_eq!(client.get("/").await.limits()[0].r, 2);
    assert_eq!(client.get_with("/", &[("x-status", "401")]).await.limits()[0].r, 1);
}

#[tokio::test]
async fn a_limit_may_have_a_response_of_its_own() {
    let limit = limit(1, "{@ip}").reject(|rejection, request| {
        let page = format!("<p>{} {}</p>", request.path(), rejection.policy());
        let mut response = Response::from(rejection).map(|_: String| page);
        *response.status_mut() = StatusCode::FORBIDDEN;
        response.headers_mut().insert("content-type", HeaderValue::from_static("text/html"));
        response
    });
    let client = client(limit).await;
    assert_eq!(client.get("/").await.status, 200);
    let answer = client.get("/").await;
    assert_eq!((answer.status, answer.body.as_str()), (403, "<p>/ api</p>"));
    assert_eq!(answer.header("content-type"), Some("text/html"));
    assert!(answer.retry_after().is_some() && answer.limits()[0].r == 0);
}

#[tokio::test]
async fn a_request_says_what_it_weighs_and_which_counts_it_has() {
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
    let limit = limit(1, "all").cost(move |request| number(request.header("x-cost")));
    let limit = limit.counts(|request| vec![if request.header("x-plan") == Some("paid") { 10 } else { 4 }]);
    let client = client(limit).await;
    let get = async |cost: &str, plan: &str| client.get_with("/", &[("x-cost", cost), ("x-plan", plan)]).await.status;
    assert_eq!(get("3", "free").await, 200);
    assert_eq!(get("2", "free").await, 429);
    assert_eq!(get("0", "free").await, 200, "a request weighs at least 1");
    assert_eq!(get("0", "free").await, 429);
    assert_eq!(get("6", "paid").await, 200);
    assert_eq!(get("1", "paid").await, 429);
}

#[tokio::test]
async fn a_request_says_what_it_costs_in_each_unit_of_the_policy() {
    let minute = Duration::from_secs(60);
    let builder = Policy::builder("uploads").rule(Rule::sliding_window(3, minute));
    let policy = builder.rule(Rule::sliding_window(100, minute).counting("bytes")).build().unwrap();
    let limit = || web::limit(&policy, "all").unwrap().limiter(&Limiter::in_memory());
    let Err(mistake) = limit().cost_of("byte", |_| 1) else { panic!("no rule counts it") };
    let known = "its rules count `calls` and `bytes`";
    assert_eq!(mistake.to_string(), format!("`cost_of`: no rule of policy `uploads` counts the unit `byte`; {known}"));
    let tokens = Policy::builder("tokens").rule(Rule::sliding_window(9, minute).counting("tokens")).build().unwrap();
    let Err(mistake) = web::limit(&tokens, "all").unwrap().cost_of("calls", |_| 1) else { panic!("no rule counts it") };
    let known = "its rules count `tokens`";
    assert_eq!(mistake.to_string(), format!("`cost_of`: no rule of policy `tokens` counts the unit `calls`; {known}"));

    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
    let by_request = limit().cost_of("bytes", move |request| number(request.header("x-bytes"))).unwrap();
    let client = client(by_request.cost_of("calls", |_| 0).unwrap()).await;
    let upload = async |bytes: &str| client.get_with("/", &[("x-bytes", bytes)]).await;
    assert_eq!([upload("60").await.status, upload("60").await.status, upload("40").await.status], [200, 429, 200]);
    assert!(upload("1").await.body.contains("bytes"));
    assert_eq!(upload("0").await.status, 200, "a request may cost nothing in a unit");
    assert_eq!(upload("0").await.status, 429, "each request is a call");
}

#[tokio::test]
async fn rules_beyond_the_counts_of_a_request_keep_theirs_and_operators_see_none_of_them() {
    let rules = [(1, 60), (2, 3_600)].map(|(count, seconds)| Rule::sliding_window(count, Duration::from_secs(seconds)));
    let policy = Policy::builder("counts of requests").rules(rules).build().unwrap();
    let limit = web::limit(&policy, "all").unwrap().limiter(&Limiter::in_memory());
    let limit = limit.counts(|_| Vec::new()).counts(|_| vec![9]);
    let seen: Vec<_> = Limiter::policy(policy.name()).unwrap().rules().iter().map(Rule::to_string).collect();
    assert_eq!(seen, ["n per 1m", "n per 1h"]);
    let client = client(limit).await;
    assert_eq!([client.get("/").await.status, client.get("/").await.status], [200, 200]);
    let answer = client.get("/").await;
    assert_eq!((answer.status, answer.problem().violated_policies), (429, vec!["counts of requests.1h".to_owned()]));
}

#[tokio::test]
async fn a_key_shows_headers_and_one_that_is_not_there_has_a_tally_of_its_own() {
    let client = client(limit(1, "{@header_x_api_key}/{@method}")).await;
    let get = async |fields: &[(&str, &str)]| client.get_with("/", fields).await.status;
    assert_eq!([get(&[("x-api-key", "a")]).await, get(&[("X-Api-Key", "a")]).await], [200, 429]);
    assert_eq!(get(&[("x-api-key", "b")]).await, 200);
    assert_eq!([get(&[]).await, get(&[]).await], [200, 429]);
    assert_eq!(client.send(reqwest::Method::POST, "/", &[]).await.status, 200);
}

#[tokio::test]
async fn a_request_without_a_header_counts_by_the_next_alternative() {
    let client = client(limit(1, "{@header_x_api_key|@ip}")).await;
    let get = async |fields: &[(&str, &str)]| client.get_with("/", fields).await.status;
    assert_eq!([get(&[]).await, get(&[]).await], [200, 429]);
    assert_eq!([get(&[("x-api-key", "a")]).await, get(&[("x-api-key", "a")]).await], [200, 429]);
    // A key that looks like the address is no address.
    assert_eq!(get(&[("x-api-key", "127.0.0.1")]).await, 200);
}

#[tokio::test]
async fn an_error_of_the_backend_is_a_response_and_a_rejection() {
    fn away() -> Limiter {
        Limiter::builder().connect_lazy("redis://127.0.0.1:1/").unwrap()
    }
    async fn as_error() -> Result<&'static str, BackendError> {
        let decision = away().check(&policy(1), &Subject::everyone()).await?;
        Ok(if decision.is_allowed() { "done" } else { "denied" })
    }
    async fn as_rejection() -> Result<&'static str, Rejection> {
        away().check(&policy(1), &Subject::everyone()).await?.into_result()?;
        Ok("done")
    }
    let router = Router::new().route("/error", get(as_error)).route("/rejection", post(as_rejection));
    let client = Client::new(serve(router).await);
    let answers = [client.get("/error").await, client.send(reqwest::Method::POST, "/rejection", &[]).await];
    for answer in answers {
        assert_eq!((answer.status, answer.problem().kind.as_str()), (503, "unavailable"));
        assert_eq!(answer.problem().detail, "the rate limit cannot be checked right now; try again later");
    }
}

/// Stored in each request by a layer.
#[derive(Clone)]
struct User(String);

#[tokio::test]
async fn a_key_shows_what_a_layer_around_has_stored_in_the_request() {
    let signed_in = from_fn(async |mut request: Request, next: Next| {
        let name = request.headers().get("x-user").map(|name| name.to_str().unwrap().to_owned());
        if let Some(name) = name {
            request.extensions_mut().insert(User(name));
        }
        next.run(request).await
    });
    let layer = web::Layer::new().value("user", |parts| parts.extension(|User(name)| name.clone()));
    let router = Router::new().route("/", get(answer)).layer(limit(1, "{@user}")).layer(layer).layer(signed_in);
    let client = Client::new(serve(router).await);
    for (user, status) in [("alice", 200), ("bob", 200), ("alice", 429)] {
        assert_eq!(client.get_with("/", &[("x-user", user)]).await.status, status, "{user}");
    }
    assert_eq!(client.get("/").await.status, 401, "nobody is signed in");
}
