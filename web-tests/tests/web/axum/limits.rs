//! Limits around whole routers.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::{any, get, post};
use bytes::Bytes;
use futures_util::stream;
use reqwest::Method;
use tallygate::web::{self, ClientIp, Layer, Limit};
use tallygate::{Limiter, Policy, Rule, Subject};
use tallygate_harness::until::until_found;
use tallygate_web_tests::server::serve;
use tallygate_web_tests::{Client, LimitItem};
use tower_http::cors::CorsLayer;

const MINUTE: Duration = Duration::from_secs(60);

fn policy(count: u64) -> Policy {
    Policy::builder("api").rule(Rule::sliding_window(count, MINUTE)).build().unwrap()
}

fn limit(policy: &Policy, key: &str) -> Limit {
    web::limit(policy, key).unwrap().limiter(&Limiter::in_memory())
}

fn router() -> Router {
    Router::new()
        .route("/items", get(|| async { "items" }).post(|| async { "posted" }))
        .route("/items/{id}", get(|| async { "item" }))
        .route("/health", get(|| async { "well" }))
        .route("/files/{name}", post(|| async { "file" }))
}

async fn client(router: Router) -> Client {
    Client::new(serve(router).await)
}

async fn statuses(client: &Client, requests: &[(Method, &str)]) -> Vec<u16> {
    let mut statuses = Vec::new();
    for (method, path) in requests {
        statuses.push(client.send(method.clone(), path, &[]).await.status);
    }
    statuses
}

#[tokio::test]
async fn one_line_limits_a_router_by_the_address_of_its_clients() {
    let client = client(router().layer(limit(&policy(2), "{@ip}"))).await;
    for body in ["items", "items"] {
        let answer = client.get("/items").await;
        assert_eq!((answer.status, answer.body.as_str(), answer.limits().len()), (200, body, 0));
    }
    let answer = client.get("/health").await;
    assert_eq!((answer.status, answer.problem().violated_policies), (429, vec!["api.1m".to_owned()]));
    assert_eq!(answer.limits(), [LimitItem { name: "api.1m".into(), r: 0, t: answer.retry_after() }]);
}

#[tokio::test]
async fn the_layer_around_it_finds_the_client_and_chooses_the_fields() {
    let layer = Layer::new().client_ip(ClientIp::behind(["127.0.0.1"]).unwrap()).on_success(true);
    let client = client(router().layer(limit(&policy(1), "{@ip}")).layer(layer)).await;
    let get = async |client_ip: &str| client.get_with("/items", &[("x-forwarded-for", client_ip)]).await;
    let answer = get("203.0.113.9").await;
    assert_eq!((answer.status, answer.limits()[0].r), (200, 0));
    assert_eq!(get("203.0.113.9").await.status, 429);
    assert_eq!(get("203.0.113.10").await.status, 200);
    assert_eq!(client.get("/items").await.status, 200, "the proxy itself");
}

#[tokio::test]
async fn each_route_and_method_can_have_a_tally_of_its_own() {
    let client = client(router().layer(limit(&policy(1), "{@ip} {@method} {@route}"))).await;
    let requests = [
        (Method::GET, "/items"),
        (Method::POST, "/items"),
        (Method::GET, "/items/1"),
        (Method::GET, "/items/2"),
        (Method::GET, "/items"),
        (Method::GET, "/none"),
        (Method::GET, "/nothing"),
    ];
    assert_eq!(statuses(&client, &requests).await, [200, 200, 200, 429, 429, 404, 429]);
}

#[tokio::test]
async fn exempt_requests_are_left_alone() {
    let limit = limit(&policy(1), "{@ip}").exempt_paths(["/health", "/files/*"]).unwrap();
    let client_one = client(router().layer(limit.clone())).await;
    let requests = [
        (Method::GET, "/items"),
        (Method::GET, "/health"),
        (Method::POST, "/files/a"),
        (Method::GET, "/healthy"),
        (Method::GET, "/items"),
    ];
    assert_eq!(statuses(&client_one, &requests).await, [200, 200, 200, 429, 429]);

    let limit_posts = self::limit(&policy(1), "{@ip}").methods(["POST"]).unwrap();
    let client_two = client(router().layer(limit_posts)).await;
    let requests = [(Method::POST, "/items"), (Method::POST, "/items"), (Method::GET, "/items")];
    assert_eq!(statuses(&client_two, &requests).await, [200, 429, 200]);

    let of_robots = |parts: &web::Parts<'_>| parts.header("x-robot").is_some();
    let client_three = client(router().layer(self::limit(&policy(1), "{@ip}").exempt_if(of_robots))).await;
    for _ in 0..3 {
        assert_eq!(client_three.get_with("/items", &[("x-robot", "1")]).await.status, 200);
    }
    assert_eq!(statuses(&client_three, &[(Method::GET, "/items"), (Method::GET, "/items")]).await, [200, 429]);
}

#[test]
fn an_exempt_path_that_no_request_has_is_a_mistake() {
    let mistake = |path: &str| limit(&policy(1), "{@ip}").exempt_paths([path]).unwrap_err().to_string();
    let health = "`exempt_paths`: the path `health` must start with `/`, like `/login`";
    assert_eq!(mistake("health"), health);
    assert!(mistake("/api*").starts_with("`exempt_paths`: the path `/api*` is not a path; write one like `/login`"));
}

#[tokio::test]
async fn head_is_limited_together_with_get() {
    let of = |methods: [&'static str; 1]| limit(&policy(1), "{@ip}").methods(methods).unwrap();
    let (get, head) = ((Method::GET, "/items"), (Method::HEAD, "/items"));
    let both = client(router().layer(of(["GET"]))).await;
    assert_eq!(statuses(&both, &[head.clone(), get.clone(), head.clone()]).await, [200, 429, 429]);
    let head_alone = client(router().layer(of(["HEAD"]))).await;
    assert_eq!(statuses(&head_alone, &[get.clone(), head.clone(), get, head]).await, [200, 200, 200, 429]);
}

#[test]
fn methods_that_would_limit_nothing_are_refused() {
    let mistake =
        |methods: &[&str]| limit(&policy(1), "{@ip}").methods(methods.iter().copied()).unwrap_err().to_string();
    assert_eq!(mistake(&["GET", "post"]), "`methods`: unknown method `post`; did you mean `POST`?");
    assert_eq!(mistake(&["PSOT"]), "`methods`: unknown method `PSOT`; did you mean `POST`?");
    assert_eq!(mistake(&["everything"]), "`methods`: `everything` is not a method; write one in capitals, like `POST`");
    assert_eq!(mistake(&[]), "`methods` must not be empty, like `[\"POST\"]`; leave it out to limit all methods");
}

#[tokio::test]
async fn exempt_addresses_are_those_of_clients_and_not_of_proxies() {
    let limit = limit(&policy(1), "{@ip}").exempt_addresses(["127.0.0.0/8", "2001:db8::/32"]).unwrap();
    let layer = Layer::new().client_ip(ClientIp::behind(["127.0.0.1"]).unwrap());
    let client = client(router().layer(limit).layer(layer)).await;
    let get = async |client_ip: &str| client.get_with("/items", &[("x-forwarded-for", client_ip)]).await.status;
    for client_ip in ["2001:db8::7", "127.0.0.2"] {
        assert_eq!([get(client_ip).await, get(client_ip).await], [200, 200]);
    }
    assert_eq!([get("203.0.113.9").await, get("203.0.113.9").await], [200, 429]);
    let mistake = self::limit(&policy(1), "{@ip}").exempt_addresses(["home"]).unwrap_err();
    assert!(mistake.to_string().starts_with("`exempt_addresses`: `home` is no network"), "{mistake}");
    let mistake = self::limit(&policy(1), "{@ip}").exempt_addresses(["::/0"]).unwrap_err().to_string();
    assert_eq!(mistake, "`exempt_addresses`: `::/0` exempts everybody; list the networks that you trust");
}

#[tokio::test]
async fn browsers_can_ask_ahead_and_read_denials_if_cors_is_outside() {
    let cors = CorsLayer::permissive().expose_headers(["retry-after".parse().unwrap(), "ratelimit".parse().unwrap()]);
    let client_one = client(router().layer(limit(&policy(1), "{@ip}")).layer(cors)).await;
    let origin = [("origin", "https://shop.example"), ("access-control-request-method", "GET")];
    for _ in 0..3 {
        assert_eq!(client_one.send(Method::OPTIONS, "/items", &origin).await.status, 200);
    }
    for status in [200, 429] {
        let answer = client_one.get_with("/items", &origin[..1]).await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (status, Some("*")));
        assert_eq!(answer.header("access-control-expose-headers"), Some("retry-after,ratelimit"));
    }
    assert_eq!(client_one.send(Method::OPTIONS, "/items", &origin).await.status, 200, "a preflight is not limited");
}

#[tokio::test]
async fn of_the_requests_with_options_only_preflights_are_left_alone() {
    let limits = |limit: Limit| async { client(Router::new().fallback(any(|| async { "done" })).layer(limit)).await };
    let ahead = [("origin", "https://shop.example"), ("access-control-request-method", "GET")];
    let one = || limit(&policy(1), "{@ip}");
    for (limit, fields, expected) in [
        (one(), &ahead[..], 200),
        (one(), &ahead[..1], 429),
        (one(), &ahead[1..], 429),
        (one(), &[], 429),
        (one().with_options_requests(), &ahead, 429),
        (one().methods(["OPTIONS"]).unwrap(), &ahead, 429),
        (one().methods(["GET"]).unwrap(), &[], 200),
    ] {
        let client = limits(limit).await;
        assert_eq!(client.send(Method::OPTIONS, "/", fields).await.status, 200);
        assert_eq!(client.send(Method::OPTIONS, "/", fields).await.status, expected, "{fields:?}");
    }
    let client = limits(one()).await;
    let small = Method::from_bytes(b"options").unwrap();
    assert_eq!(client.send(small.clone(), "/", &ahead).await.status, 200, "no browser sends it");
    assert_eq!(client.send(small, "/", &ahead).await.status, 429);
}

#[tokio::test]
async fn a_limit_in_shadow_counts_and_denies_nothing() {
    let (limiter, policy) = (Limiter::in_memory(), policy(1));
    let limit = web::limit(&policy, "{@ip}").unwrap().limiter(&limiter).shadow();
    let client = client(router().layer(limit)).await;
    for _ in 0..3 {
        let answer = client.get("/items").await;
        assert_eq!((answer.status, answer.header("ratelimit")), (200, None));
    }
    let decision = limiter.peek(&policy, &Subject::of("127.0.0.1")).await.unwrap();
    assert_eq!(decision.report()[0].remaining(), 0);
}

#[tokio::test]
async fn a_policy_may_have_rules_on_several_values() {
    let rules = Policy::builder("api").rule(Rule::sliding_window(1, MINUTE));
    let policy = rules.rule_on("all", Rule::sliding_window(2, MINUTE)).build().unwrap();
    let limit = limit(&policy, "{@route}").subject("all", "all").unwrap();
    let client = client(router().layer(limit)).await;
    let requests = [(Method::GET, "/items"), (Method::GET, "/health"), (Method::GET, "/items/1")];
    assert_eq!(statuses(&client, &requests).await, [200, 200, 429]);
}

#[test]
fn a_label_that_the_policy_does_not_have_is_a_mistake() {
    let rules = Policy::builder("api").rule(Rule::sliding_window(1, MINUTE));
    let policy = rules.rule_on("network", Rule::sliding_window(2, MINUTE)).build().unwrap();
    let mistake = limit(&policy, "{@ip}").subject("netwrk", "{@ip:subnet}").unwrap_err().to_string();
    assert_eq!(mistake, "`subject`: policy `api` has no rule on a subject `netwrk`; did you mean `network`?");
}

#[tokio::test]
async fn a_limit_that_is_set_up_wrongly_closes_the_router_instead_of_opening_it() {
    let mistake = web::limit(&policy(1), "{ip}").unwrap_err();
    assert!(mistake.to_string().contains("write the name of one behind an `@`, like `{@ip}`"), "{mistake}");
    let labelled = Policy::builder("api").rule_on("all", Rule::sliding_window(2, MINUTE)).build().unwrap();
    for limit in [limit(&policy(1), "{@user}"), limit(&labelled, "{@ip}")] {
        let client = client(router().layer(limit)).await;
        assert_eq!(client.get("/items").await.problem().kind, "unavailable");
    }
}

#[tokio::test]
async fn a_request_is_running_until_its_response_was_sent() {
    let policy = Policy::builder("export").rule(Rule::concurrency(1, MINUTE)).build().unwrap();
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes, Infallible>>(1);
    // The first response goes on for as long as something may be sent.
    let first = Arc::new(Mutex::new(Some(receiver)));
    let export = get(move || {
        let receiver = first.lock().unwrap().take();
        async move {
            match receiver {
                Some(receiver) => Body::from_stream(stream::unfold(receiver, async |mut receiver| {
                    Some((receiver.recv().await?, receiver))
                })),
                None => Body::from("all of it"),
            }
        }
    });
    let client = client(Router::new().route("/export", export).layer(limit(&policy, "{@ip}"))).await;
    let response = client.request(Method::GET, "/export", &[]).send().await.unwrap();
    assert_eq!(response.status(), 200);

    let answer = client.get("/export").await;
    assert_eq!((answer.status, answer.problem().kind.as_str()), (429, "concurrency"));
    let shown = "\"export.concurrency\";q=1;qu=\"concurrent-requests\"";
    assert_eq!(answer.header("ratelimit-policy"), Some(shown));

    sender.send(Ok(Bytes::from("the end"))).await.unwrap();
    drop(sender);
    assert_eq!(response.text().await.unwrap(), "the end");
    until_found("the request is over", async || client.get("/export").await.status == 200).await;
}
