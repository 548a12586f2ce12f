//! The path and the route are those by which the router finds the handler, however a client writes them.

use actix_web::middleware::{Condition, NormalizePath, TrailingSlash};
use actix_web::{App, HttpRequest, HttpServer, web as actix};
use reqwest::Method;
use tallygate::config::Policies;
use tallygate::{Limiter, web};
use tallygate_web_tests::{Client, ask};

use super::{limit, run};
use crate::spellings::{FILE, SPELLINGS, assert_counted};

/// Answers with the path as it was sent.
async fn sent(request: HttpRequest) -> String {
    request.uri().path().to_owned()
}

/// Serves two routes within a limit.
macro_rules! serve {
    ($limit:expr) => {{
        let limit = $limit;
        let server = run(move || {
            let app = move || {
                let app = App::new().route("/login", actix::post().to(sent));
                app.route("/users/{id}", actix::post().to(sent)).wrap(limit.clone())
            };
            let server = HttpServer::new(app).workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
            (server.addrs()[0], server.run())
        });
        Client::new(server.await)
    }};
}

/// Returns the statuses of `POST` to these paths, after a look at how they came to the server.
async fn statuses(client: &Client, paths: &[&str]) -> Vec<u16> {
    let mut statuses = Vec::new();
    for path in paths {
        let answer = client.send(Method::POST, path, &[]).await;
        assert!(answer.status != 200 || answer.body == *path, "{path} was sent as {}", answer.body);
        statuses.push(answer.status);
    }
    statuses
}

#[tokio::test]
async fn another_spelling_of_a_path_is_limited_by_the_policies_of_a_file() {
    let limiter = Limiter::in_memory();
    let file = "policy.login = { match = { path = '/login' }, key = '{@ip}', rules = ['2 per 1m'] }";
    limiter.apply(&Policies::from_toml(file).unwrap()).unwrap();
    let client = serve!(web::limits(&limiter).unwrap());
    let paths = ["/%6Cogin", "/login", "/logi%6E", "/login", "/users/7"];
    assert_eq!(statuses(&client, &paths).await, [200, 200, 429, 429, 200]);
}

#[tokio::test]
async fn another_spelling_of_a_path_is_the_same_path_and_the_same_route() {
    for key in ["{@ip} {@path}", "{@ip} {@route}"] {
        let client = serve!(limit(1, key));
        let paths = ["/%6Cogin", "/login", "/users/7", "/%75sers/%37"];
        assert_eq!(statuses(&client, &paths).await, [200, 429, 200, 429], "{key}");
        // Another path, and the same route.
        let other = if key.contains("path") { 200 } else { 429 };
        assert_eq!(statuses(&client, &["/%75sers/8"]).await, [other], "{key}");
    }
}

#[tokio::test]
async fn another_spelling_of_an_exempt_path_is_exempt() {
    let client = serve!(limit(1, "{@ip}").exempt_paths(["/users/*"]).unwrap());
    let paths = ["/%75sers/7", "/users/7", "/login", "/login"];
    assert_eq!(statuses(&client, &paths).await, [200, 200, 200, 429]);
}

/// Serves handlers that answer with a plain path, behind a middleware that may normalize paths, within a limit.
macro_rules! serve_all {
    ($limit:expr, $normalize:expr) => {{
        let (limit, normalize) = ($limit, $normalize);
        let user = |id: actix::Path<String>| async move { if *id == "admin" { "/users/admin" } else { "/users/7" } };
        let start = move || {
            let app = move || {
                let normalize: Option<TrailingSlash> = normalize;
                let normalized = NormalizePath::new(normalize.unwrap_or(TrailingSlash::Trim));
                App::new()
                    .route("/login", actix::to(async || "/login"))
                    .route("/users/{id}", actix::to(user))
                    .route("/assets/{path:.*}", actix::to(async || "/assets/a.css"))
                    .route("/api/items", actix::to(async || "/api/items"))
                    .route("/folder/", actix::to(async || "/folder/"))
                    .default_service(actix::to(async || "/other"))
                    .wrap(Condition::new(normalize.is_some(), normalized))
                    .wrap(limit.clone())
            };
            let server = HttpServer::new(app).workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
            (server.addrs()[0], server.run())
        };
        run(start).await
    }};
}

fn limits() -> web::Limits {
    let limiter = Limiter::in_memory();
    limiter.apply(&Policies::from_toml(FILE).unwrap()).unwrap();
    web::limits(&limiter).unwrap()
}

#[tokio::test]
async fn each_spelling_of_a_path_is_counted_by_the_limit_of_the_handler_that_it_reaches() {
    for normalize in [None, Some(TrailingSlash::Trim), Some(TrailingSlash::MergeOnly)] {
        for target in SPELLINGS {
            assert_counted(serve_all!(limits(), normalize), target).await;
        }
    }
}

#[tokio::test]
async fn a_path_that_is_normalized_inside_of_the_limit_has_the_tally_and_the_route_of_what_it_becomes() {
    for key in ["{@path}", "{@route}"] {
        for target in ["//login", "/login/", "//login///", "/%6Cogin/"] {
            let server = serve_all!(limit(1, key), Some(TrailingSlash::Trim));
            assert_eq!(ask(server, "GET", target, &[]).await, (200, "/login".to_owned()), "{target}");
            assert_eq!(ask(server, "GET", "/login", &[]).await.0, 429, "{key} {target}");
        }
    }
    let server = serve_all!(limit(1, "{@route}"), Some(TrailingSlash::Always));
    assert_eq!(ask(server, "GET", "/folder", &[]).await, (200, "/folder/".to_owned()));
    assert_eq!(ask(server, "GET", "/folder/", &[]).await.0, 429);
}
