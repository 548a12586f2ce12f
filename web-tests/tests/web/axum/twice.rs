//! A limit that stands around a request twice counts it once.

use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::routing::{get, post};
use tallygate::config::Policies;
use tallygate::web::{self, Limit};
use tallygate::{Limiter, Policy, Rule};
use tallygate_web_tests::Client;
use tallygate_web_tests::server::serve;
use tower::ServiceExt as _;

fn limit(key: &str) -> Limit {
    let policy = Policy::builder("api").rule(Rule::sliding_window(2, Duration::from_secs(60))).build().unwrap();
    web::limit(&policy, key).unwrap().limiter(&Limiter::in_memory())
}

fn router() -> Router {
    Router::new().route("/items", get(|| async { "items" }))
}

/// The statuses of three requests.
async fn statuses(router: Router, path: &str) -> Vec<u16> {
    let client = Client::new(serve(router).await);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(client.get(path).await.status);
    }
    statuses
}

#[tokio::test]
async fn the_clones_of_a_limit_count_a_request_once() {
    let limit = limit("{@ip}");
    assert_eq!(statuses(router().layer(limit.clone()).layer(limit.clone()), "/items").await, [200, 200, 429]);
    let limit = self::limit("{@ip}");
    let nested = Router::new().nest("/api", router().layer(limit.clone())).layer(limit);
    assert_eq!(statuses(nested, "/api/items").await, [200, 200, 429]);
}

#[tokio::test]
async fn the_policies_of_a_file_count_a_request_once() {
    let limiter = Limiter::in_memory();
    let file = "policy.api = { match = { path = '/*' }, key = '{@ip}', rules = ['2 per 1m'] }";
    limiter.apply(&Policies::from_toml(file).unwrap()).unwrap();
    let limits = web::limits(&limiter).unwrap();
    assert_eq!(statuses(router().layer(limits.clone()).layer(limits), "/items").await, [200, 200, 429]);
}

#[tokio::test]
async fn a_limit_that_is_made_twice_counts_a_request_once() {
    let limiter = Limiter::in_memory();
    let own = || limit("{@ip}").limiter(&limiter);
    assert_eq!(statuses(router().layer(own()).layer(own()), "/items").await, [200, 200, 429]);
    let limiter = Limiter::in_memory();
    let file = "policy.api = { match = { path = '/*' }, key = '{@ip}', rules = ['2 per 1m'] }";
    limiter.apply(&Policies::from_toml(file).unwrap()).unwrap();
    let own = || web::limits(&limiter).unwrap();
    assert_eq!(statuses(router().layer(own()).layer(own()), "/items").await, [200, 200, 429]);
}

#[tokio::test]
async fn limits_of_other_rules_costs_or_subjects_count_a_request_each() {
    let limiter = Limiter::in_memory();
    let own = || limit("{@ip}").limiter(&limiter);
    let router = || self::router();
    assert_eq!(statuses(router().layer(own()).layer(own().cost(|_| 2)), "/items").await, [429, 429, 429]);
    assert_eq!(
        statuses(router().layer(limit("{@ip}")).layer(own()), "/items").await,
        [429, 429, 429],
        "other limiters"
    );
    // A nested router sees another path.
    let limit = limit("{@path}");
    let nested = Router::new().nest("/api", router().layer(limit.clone())).layer(limit);
    assert_eq!(statuses(nested, "/api/items").await, [200, 200, 429]);
}

#[tokio::test]
async fn a_limit_in_shadow_does_not_stand_for_one_that_is_enforced() {
    let limiter = Limiter::in_memory();
    let own = || limit("{@ip}").limiter(&limiter);
    // Both count a request, and the inner one denies.
    assert_eq!(statuses(router().layer(own()).layer(own().shadow()), "/items").await, [200, 429, 429]);
    let limiter = Limiter::in_memory();
    let own = || limit("{@ip}").limiter(&limiter);
    assert_eq!(statuses(router().layer(own().shadow()).layer(own()), "/items").await, [200, 200, 429]);
    let shadow = limit("{@ip}").shadow();
    assert_eq!(statuses(router().layer(shadow.clone()).layer(shadow), "/items").await, [200, 200, 200]);
}

#[tokio::test]
async fn a_limit_that_stands_around_a_request_thrice_counts_it_once() {
    let limit = limit("{@ip}");
    let thrice = router().layer(limit.clone()).layer(limit.clone()).layer(limit);
    assert_eq!(statuses(thrice, "/items").await, [200, 200, 429]);
}

/// Sends a batch of three parts for `path`, each through a limit that stands around the batch, too. Returns how many of them
/// are denied.
async fn denied_of_batch(batch: &str, path: &'static str) -> String {
    let limit = limit("{@ip}");
    let parts = Router::new().fallback(|| async { "part" }).layer(limit.clone());
    let handler = post(async move |request: Request| {
        let (mut head, _) = request.into_parts();
        head.uri = path.parse().unwrap();
        head.method = axum::http::Method::GET;
        let mut denied = 0;
        for _ in 0..3 {
            let part = Request::from_parts(head.clone(), axum::body::Body::empty());
            denied += usize::from(parts.clone().oneshot(part).await.unwrap().status() == 429);
        }
        denied.to_string()
    });
    let client = Client::new(serve(Router::new().route(batch, handler).layer(limit)).await);
    let answer = client.send(reqwest::Method::POST, batch, &[]).await;
    assert_eq!(answer.status, 200);
    answer.body
}

#[tokio::test]
async fn the_parts_of_a_batch_count_by_themselves() {
    assert_eq!(denied_of_batch("/batch", "/items").await, "2");
}

#[tokio::test]
async fn the_first_part_of_a_batch_that_may_be_the_batch_itself_counts_with_it_and_the_others_by_themselves() {
    for (batch, path) in [("/rpc", "/rpc"), ("/api/rpc", "/rpc"), ("/rpc", "/")] {
        assert_eq!(denied_of_batch(batch, path).await, "1", "{batch} {path}");
    }
}
