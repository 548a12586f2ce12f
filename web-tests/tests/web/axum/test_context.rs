//! The context of a test gives requests without a socket a client.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::routing::get;
use tallygate::context::{self, Context};
use tallygate::web::{self, ClientIp, Layer};
use tallygate::{Limiter, Rejection, rate_limit};
use tower::ServiceExt as _;

async fn whoami(client: ClientIp) -> String {
    client.address().to_string()
}

async fn perhaps(client: Option<ClientIp>) -> String {
    client.map_or("nobody".to_owned(), |client| client.address().to_string())
}

#[rate_limit(name = "context.report", key = "{@ip}", rule(count = 1, per = "60s"))]
fn report() -> Result<String, Rejection> {
    Ok(Context::current().and_then(|context| context.get("ip").map(str::to_owned)).unwrap_or_default())
}

/// A plain function, which runs on another thread.
async fn blocking() -> Result<String, Rejection> {
    tokio::task::spawn_blocking(context::carry_fn(report)).await.unwrap()
}

fn router() -> Router {
    let routes = Router::new().route("/whoami", get(whoami)).route("/perhaps", get(perhaps));
    routes.route("/blocking", get(blocking))
}

async fn ask(router: &Router, path: &str) -> (u16, String) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1_000).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn the_client_of_a_handler_is_the_one_that_keys_show() {
    let test = Context::test().limiter(&Limiter::in_memory());
    let ip = test.get("ip").unwrap().to_owned();
    let within_layer = router().layer(Layer::new().context(test.clone()));
    for path in ["/whoami", "/perhaps"] {
        assert_eq!(ask(&within_layer, path).await, (200, ip.clone()), "{path}");
        assert_eq!(context::scope(test.clone(), ask(&router(), path)).await, (200, ip.clone()), "{path}");
        let layered = router().layer(Layer::new());
        assert_eq!(context::scope(test.clone(), ask(&layered, path)).await, (200, ip.clone()), "{path}");
    }
    assert_eq!(ask(&router(), "/whoami").await.0, 500, "without a context");
    assert_eq!(ask(&router(), "/perhaps").await, (200, "nobody".to_owned()));
}

#[tokio::test]
async fn a_client_of_a_context_may_be_written_as_it_is_counted() {
    for (ip, found) in [
        ("2001:db8:1:2::/64", "2001:db8:1:2:: 2001:db8:1:2::/64"),
        ("2001:db8:1::/48", "2001:db8:1:: 2001:db8:1::/48"),
        ("2001:db8:1:2::7", "2001:db8:1:2::7 2001:db8:1:2::/64"),
        ("192.0.2.7", "192.0.2.7 192.0.2.7"),
        ("192.0.2.0/24", "nobody"),
        ("::/0", "nobody"),
        ("home", "nobody"),
    ] {
        let shown = |client: Option<ClientIp>| async move {
            client.map_or("nobody".to_owned(), |client| format!("{} {client}", client.address()))
        };
        let router = Router::new().route("/", get(shown));
        let context = Context::new().with("ip", ip);
        assert_eq!(context::scope(context, ask(&router, "/")).await, (200, found.to_owned()), "{ip}");
    }
}

#[tokio::test]
async fn values_and_limits_see_that_client() {
    let test = Context::test();
    let ip = test.get("ip").unwrap().to_owned();
    let find = |parts: &web::Parts<'_>| parts.client_ip().map(ClientIp::address);
    let policy =
        tallygate::Policy::builder("api").rule("1 per 1m".parse::<tallygate::Rule>().unwrap()).build().unwrap();
    let limit = web::limit(&policy, "{@client}").unwrap().limiter(&Limiter::in_memory());
    let limited = router().layer(limit.exempt_if(move |parts| find(parts).is_none()));
    let router = limited.layer(Layer::new().context(test).value("client", find));
    assert_eq!(ask(&router, "/whoami").await, (200, ip));
    assert_eq!(ask(&router, "/whoami").await.0, 429);
}

#[tokio::test]
async fn a_plain_function_on_another_thread_has_the_context_that_was_carried() {
    let test = Context::test().limiter(&Limiter::in_memory());
    let ip = test.get("ip").unwrap().to_owned();
    let router = router().layer(Layer::new().context(test));
    assert_eq!(ask(&router, "/blocking").await, (200, ip));
    assert_eq!(ask(&router, "/blocking").await.0, 429);
}
