//! Whoever reaches a handler is counted by its limit, however the path and the method are spelt.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::Path;
use axum::routing::{any, get};
use reqwest::Method;
use tallygate::config::Policies;
use tallygate::web::{self, Limit};
use tallygate::{Limiter, Policy, Rule};
use tallygate_web_tests::server::serve;
use tallygate_web_tests::{Client, ask};

use crate::spellings::{FILE, SPELLINGS, assert_counted};

/// A router whose handlers answer with a plain path that reaches them.
fn router() -> Router {
    let user = |Path(id): Path<String>| async move { if id == "admin" { "/users/admin" } else { "/users/7" } };
    Router::new()
        .route("/login", any(|| async { "/login" }))
        .route("/users/{id}", any(user))
        .route("/assets/{*path}", any(|| async { "/assets/a.css" }))
        .route("/api/items", any(|| async { "/api/items" }))
        .fallback(any(|| async { "/other" }))
}

fn limits() -> web::Limits {
    let limiter = Limiter::in_memory();
    limiter.apply(&Policies::from_toml(FILE).unwrap()).unwrap();
    web::limits(&limiter).unwrap()
}

fn limit(key: &str) -> Limit {
    let policy = Policy::builder("api").rule(Rule::sliding_window(1, Duration::from_secs(60))).build();
    web::limit(&policy.unwrap(), key).unwrap().limiter(&Limiter::in_memory())
}

async fn get_status(server: SocketAddr, target: &str) -> u16 {
    get_once(server, target).await.0
}

async fn get_once(server: SocketAddr, target: &str) -> (u16, String) {
    ask(server, "GET", target, &[]).await
}

#[tokio::test]
async fn each_spelling_of_a_path_is_counted_by_the_limit_of_the_handler_that_it_reaches() {
    for target in SPELLINGS {
        assert_counted(serve(router().layer(limits())).await, target).await;
    }
}

#[tokio::test]
async fn targets_that_are_no_paths_are_limited() {
    let server = serve(router().layer(limits())).await;
    assert_eq!(ask(server, "GET", "http://localhost/login", &[]).await, (200, "/login".to_owned()));
    assert_eq!(get_status(server, "/login").await, 429);
    assert_eq!(ask(server, "OPTIONS", "*", &[]).await.0, 200);
    assert_eq!(ask(server, "CONNECT", "localhost:443", &[]).await.0, 429);
    assert_eq!(get_status(server, "/other").await, 429);
}

#[tokio::test]
async fn each_spelling_of_a_path_has_one_tally() {
    for target in ["/users/%61dmin", "/users/admin", "/users/%61%64%6d%69%6E"] {
        let server = serve(router().layer(limit("{@path}"))).await;
        assert_eq!(get_once(server, target).await, (200, "/users/admin".to_owned()), "{target}");
        assert_eq!(get_status(server, "/users/admin").await, 429, "{target}");
        assert_eq!(get_status(server, "/users/7").await, 200, "another path");
    }
}

#[tokio::test]
async fn only_what_is_surely_an_exempt_path_is_exempt() {
    for target in SPELLINGS {
        let limit = limit("all").exempt_paths(["/assets/*", "/login"]).unwrap();
        let server = serve(router().layer(limit)).await;
        let (_, reached) = get_once(server, target).await;
        let status = get_status(server, target).await;
        let leaves = target.contains("..") || target.contains("%2e");
        if leaves || !["/assets/a.css", "/login"].contains(&reached.as_str()) {
            assert!([400, 429].contains(&status), "{target} reaches {reached}");
        }
    }
    let server = serve(router().layer(limit("all").exempt_paths(["/assets/*", "/login"]).unwrap())).await;
    for target in ["/login", "/assets/a.css", "/assets/%61.css", "/assets/a%20b/%C3%A9.css", "/assets/x/"] {
        for _ in 0..2 {
            assert_eq!(get_status(server, target).await, 200, "{target}");
        }
    }
}

#[tokio::test]
async fn a_method_in_small_letters_is_counted_where_a_handler_of_any_method_answers_it() {
    let limit = |key: &str| limit(key).methods(["POST"]).unwrap();
    for method in ["POST", "post", "Post"] {
        let server = serve(router().layer(limit("{@method}"))).await;
        assert_eq!(ask(server, method, "/login", &[]).await.0, 200, "{method}");
        assert_eq!(ask(server, "POST", "/login", &[]).await.0, 429, "{method}");
    }
}

#[tokio::test]
async fn methods_that_a_client_invents_share_a_tally_and_so_do_those_that_reach_one_handler() {
    let router = || Router::new().route("/", get(|| async { "read" })).route("/any", any(|| async { "any" }));
    for (path, methods) in [("/any", ["FOO", "BAR"]), ("/", ["HEAD", "GET"]), ("/any", ["PUT", "put"])] {
        let server = serve(router().layer(limit("{@method}"))).await;
        let mut statuses = Vec::new();
        for method in methods {
            // The body of an answer to `HEAD` is not sent.
            statuses.push(if method == "HEAD" {
                head(server, path).await
            } else {
                ask(server, method, path, &[]).await.0
            });
        }
        assert_eq!(statuses, [200, 429], "{methods:?}");
    }
}

async fn head(server: SocketAddr, path: &str) -> u16 {
    Client::new(server).send(Method::HEAD, path, &[]).await.status
}

#[tokio::test]
async fn a_route_is_one_tally_however_its_path_is_spelt_and_requests_without_one_share_another() {
    let server = serve(router().layer(limit("{@route}"))).await;
    for (target, expected) in [
        ("/users/7", 200),
        ("/users/%38", 429),
        ("/users/a%2Fb", 429),
        ("/login", 200),
        ("/%6Cogin", 200), // reaches the fallback
        ("//login", 429),
        ("/none", 429),
        ("/assets/../users/7", 200),
        ("/assets/a", 429),
    ] {
        assert_eq!(get_status(server, target).await, expected, "{target}");
    }
}

#[tokio::test]
async fn the_route_is_not_known_around_a_router_that_has_not_looked_for_it() {
    let inner = Router::new().nest("/api", Router::new().route("/items/{id}", get(|| async { "item" })));
    let around = serve(Router::new().fallback_service(inner.clone()).layer(limit("{@route}"))).await;
    assert_eq!([get_status(around, "/api/items/1").await, get_status(around, "/x").await], [200, 429]);
    let within = serve(inner.route_layer(limit("{@route}"))).await;
    assert_eq!([get_status(within, "/api/items/1").await, get_status(within, "/api/items/2").await], [200, 429]);
    assert_eq!(
        [get_status(within, "/x").await, get_status(within, "/x").await],
        [404, 404],
        "`route_layer` has no fallback"
    );
}
