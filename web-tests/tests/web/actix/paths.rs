//! The path and the route are those by which the router finds the handler, however a client writes them.

use actix_web::{App, HttpRequest, HttpServer, web as actix};
use reqwest::Method;
use tallygate::config::Policies;
use tallygate::{Limiter, web};
use tallygate_web_tests::Client;

use super::{limit, run};

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
