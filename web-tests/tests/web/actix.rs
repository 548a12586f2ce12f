//! Limits in actix-web, asked over sockets by a client.

mod blocking;
mod clients;
mod middleware;
mod paths;

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use actix_web::dev::Server;
use actix_web::middleware::Condition;
use actix_web::web::{Data, ServiceConfig};
use actix_web::{App, HttpResponse, HttpServer, Responder, get};
use reqwest::Method;
use tallygate::context::Context;
use tallygate::web::{self, ClientIp, Layer, Legacy, Limit};
use tallygate::{BackendError, Limiter, Policy, Rejection, Rule, Subject, rate_limit};
use tallygate_web_tests::{Client, Http};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

const MINUTE: Duration = Duration::from_secs(60);

#[get("/captcha")]
#[rate_limit(
    name = "captcha",
    key = "138",
    rule(count = 3, per = "60s"),
    rule(count = 100, per = "1h", name = "hourly"),
    limiter = limiter.get_ref()
)]
async fn captcha(limiter: Data<Limiter>) -> Result<&'static str, Rejection> {
    let _ = limiter;
    Ok("sent")
}

#[get("/chat")]
#[rate_limit(
    name = "chat",
    unit("tokens", cost = 400),
    rule(count = 3, per = "60s"),
    rule(count = 500, per = "60s", unit = "tokens"),
    limiter = limiter.get_ref()
)]
async fn chat(limiter: Data<Limiter>) -> Result<&'static str, Rejection> {
    let _ = limiter;
    Ok("said")
}

#[get("/response")]
#[rate_limit(name = "response", rule(count = 1, per = "60s"), limiter = limiter.get_ref())]
async fn response(limiter: Data<Limiter>) -> HttpResponse {
    let _ = limiter;
    HttpResponse::Ok().body("sent")
}

#[get("/any-error")]
#[rate_limit(name = "response", rule(count = 1, per = "60s"), limiter = limiter.get_ref())]
async fn any_error(limiter: Data<Limiter>) -> actix_web::Result<&'static str> {
    let _ = limiter;
    Ok("sent")
}

#[get("/opaque")]
#[rate_limit(name = "opaque", rule(count = 1, per = "60s"), limiter = limiter.get_ref())]
async fn opaque(limiter: Data<Limiter>) -> impl Responder {
    let _ = limiter;
    "sent"
}

#[get("/duplicate")]
#[rate_limit(name = "twice", key = "k", prevent_duplicate, limiter = limiter.get_ref())]
async fn duplicate(limiter: Data<Limiter>) -> Result<&'static str, Rejection> {
    let _ = limiter;
    Ok("sent")
}

/// Admits one call of each client and user.
#[get("/once")]
#[rate_limit(name = "once", key = "{@ip}/{@user}", rule(count = 1, per = "60s"), limiter = limiter.get_ref())]
async fn once(limiter: Data<Limiter>) -> Result<String, Rejection> {
    let _ = limiter;
    Ok(Context::current().unwrap().get("ip").unwrap().to_owned())
}

/// Asks a server that is not there.
#[get("/by-hand")]
async fn by_hand() -> Result<&'static str, BackendError> {
    let away = Limiter::builder().connect_lazy("redis://127.0.0.1:1/").unwrap();
    let decision = away.check(&policy(1), &Subject::everyone()).await?;
    Ok(if decision.is_allowed() { "sent" } else { "denied" })
}

#[get("/whoami")]
async fn whoami(client: ClientIp) -> String {
    client.address().to_string()
}

#[get("/items/{id}")]
async fn item() -> &'static str {
    "item"
}

fn routes(config: &mut ServiceConfig) {
    config.service(captcha).service(response).service(any_error).service(opaque).service(duplicate).service(once);
    config.service(by_hand).service(whoami).service(item).service(chat);
}

async fn serve(layer: Option<Layer>, limit: Option<Limit>) -> SocketAddr {
    let limiter = Data::new(Limiter::in_memory());
    run(move || {
        let server = HttpServer::new(move || {
            let limit = limit.clone();
            let limit = Condition::new(limit.is_some(), limit.unwrap_or_else(any_limit));
            let layer = Condition::new(layer.is_some(), layer.clone().unwrap_or_default());
            App::new().app_data(limiter.clone()).configure(routes).wrap(limit).wrap(layer)
        });
        let server = server.workers(2).disable_signals().bind_auto_h2c("127.0.0.1:0").unwrap();
        (server.addrs()[0], server.run())
    })
    .await
}

/// Runs a server until the test ends, on threads of its own.
pub(crate) async fn run(start: impl FnOnce() -> (SocketAddr, Server) + Send + 'static) -> SocketAddr {
    let (say, address) = oneshot::channel();
    thread::spawn(move || {
        actix_web::rt::System::new().block_on(async move {
            let (address, server) = start();
            say.send(address).unwrap();
            server.await.unwrap();
        });
    });
    address.await.unwrap()
}

fn policy(count: u64) -> Policy {
    Policy::builder("api").rule(Rule::sliding_window(count, MINUTE)).build().unwrap()
}

fn any_limit() -> Limit {
    limit(1, "{@ip}")
}

fn limit(count: u64, key: &str) -> Limit {
    web::limit(&policy(count), key).unwrap().limiter(&Limiter::in_memory())
}

#[tokio::test]
async fn each_unit_has_its_fields() {
    let layer = Layer::new().on_success(true).legacy(Legacy::XRateLimitByUnit).fields(None);
    let client = Client::new(serve(Some(layer), None).await);
    for status in [200, 429] {
        let answer = client.get("/chat").await;
        let remaining = ["requests", "tokens"].map(|unit| answer.header(&format!("x-ratelimit-remaining-{unit}")));
        assert_eq!((answer.status, remaining), (status, [Some("2"), Some("100")]));
        assert!(answer.header("x-ratelimit-reset-tokens").is_some_and(|reset| reset.ends_with('s')));
    }
}

#[tokio::test]
async fn fields_are_those_of_the_decision_by_both_versions_of_http() {
    for http in [Http::One, Http::Two] {
        let client = Client::by(http, serve(Some(Layer::new().on_success(true)), None).await);
        for remaining in [2, 1, 0] {
            let answer = client.get("/captcha").await;
            assert_eq!((answer.status, answer.body.as_str()), (200, "sent"));
            assert_eq!(answer.limits().iter().map(|limit| limit.r).collect::<Vec<_>>(), [remaining, 97 + remaining]);
            assert_eq!(answer.policies().len(), 2);
        }
        let answer = client.get("/captcha").await;
        assert_eq!((answer.status, answer.limits()[0].t), (429, answer.retry_after()));
        assert_eq!(answer.problem().violated_policies, ["captcha.1m"]);
    }
}

#[tokio::test]
async fn an_error_of_the_backend_is_a_response() {
    let answer = Client::new(serve(None, None).await).get("/by-hand").await;
    assert_eq!((answer.status, answer.problem().kind.as_str()), (503, "unavailable"));
    assert_eq!(answer.problem().detail, "the rate limit cannot be checked right now; try again later");
}

#[tokio::test]
async fn handlers_may_return_what_handlers_return() {
    for (path, status, kind) in [
        ("/response", 429, "limited"),
        ("/any-error", 429, "limited"),
        ("/opaque", 429, "limited"),
        ("/duplicate", 409, "duplicate"),
    ] {
        let client = Client::new(serve(None, None).await);
        assert_eq!(client.get(path).await.body, "sent", "{path}");
        let answer = client.get(path).await;
        assert_eq!((answer.status, answer.problem().kind.as_str()), (status, kind), "{path}");
    }
}

#[tokio::test]
async fn clients_behind_a_proxy_have_tallies_of_their_own_and_others_cannot_choose_theirs() {
    let layer = Layer::new().value("user", |parts| parts.header("x-user").map(str::to_owned));
    let behind = layer.clone().client_ip(ClientIp::behind(["127.0.0.1"]).unwrap());
    let client = Client::new(serve(Some(behind), None).await);
    let lines = |last: &'static str| [("x-user", "a"), ("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", last)];
    let answer = client.get_with("/once", &lines("203.0.113.9")).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "203.0.113.9"));
    assert_eq!(client.get_with("/once", &lines("203.0.113.9")).await.status, 429);
    assert_eq!(client.get_with("/once", &lines("2001:db8::7")).await.body, "2001:db8::/64");
    assert_eq!(client.get_with("/whoami", &lines("2001:db8::7")).await.body, "2001:db8::7");
    assert_eq!(client.get("/once").await.problem().kind, "unidentified", "there is no user");

    let client = Client::new(serve(Some(layer), None).await);
    assert_eq!(client.get_with("/once", &lines("203.0.113.9")).await.body, "127.0.0.1");
    assert_eq!(client.get_with("/once", &lines("203.0.113.10")).await.status, 429);
}

#[tokio::test]
async fn clients_behind_a_proxy_that_writes_the_standard_field_have_tallies_of_their_own() {
    let layer = Layer::new().value("user", |_| Some("a"));
    let layer = layer.client_ip(ClientIp::behind(["127.0.0.1"]).unwrap().forwarded());
    let client = Client::new(serve(Some(layer), None).await);
    let get = async |forwarded: &str| client.get_with("/once", &[("forwarded", forwarded)]).await;
    for host in [r#"for="[2001:db8:1:2::17]:_p""#, r#"for="[2001:db8:1:3::17]:_p";host="a\"b""#] {
        assert_eq!(get(host).await.status, 200);
        assert_eq!(get(&format!(r#"for="192.0.2.1\", {host}"#)).await.status, 429);
    }
}

#[tokio::test]
async fn a_limit_around_the_app_whose_key_shows_a_missing_value_is_a_mistake_of_the_service() {
    let client = Client::new(serve(Some(Layer::new()), Some(limit(1, "{@user}"))).await);
    let answer = client.get("/items/1").await;
    assert_eq!((answer.status, answer.retry_after(), answer.problem().kind.as_str()), (500, None, "unavailable"));
}

#[tokio::test]
async fn without_a_layer_there_is_no_client() {
    let client = Client::new(serve(None, None).await);
    let answer = client.get("/whoami").await;
    assert_eq!((answer.status, answer.body.as_str()), (500, ""));
    assert_eq!(client.get("/once").await.status, 500);
}

#[tokio::test]
async fn fifty_connections_admit_exactly_the_count() {
    let server = serve(Some(Layer::new()), None).await;
    let mut answers = JoinSet::new();
    for _ in 0..50 {
        let client = Client::new(server);
        answers.spawn(async move { client.get("/captcha").await.status });
    }
    let admitted = answers.join_all().await.into_iter().filter(|status| *status == 200).count();
    assert_eq!(admitted, 3);
}

#[tokio::test]
async fn a_limit_around_the_app_answers_for_it() {
    let limit = limit(1, "{@ip} {@method} {@route}").exempt_paths(["/whoami"]).unwrap();
    let client = Client::new(serve(None, Some(limit)).await);
    let mut statuses = Vec::new();
    for path in ["/items/1", "/items/2", "/none", "/nothing"] {
        statuses.push(client.get(path).await.status);
    }
    assert_eq!(statuses, [200, 429, 404, 429]);
    let ahead = [("origin", "https://shop.example"), ("access-control-request-method", "GET")];
    for _ in 0..2 {
        assert_eq!(client.get("/whoami").await.body, "127.0.0.1");
        assert_eq!(client.send(Method::OPTIONS, "/items/1", &ahead).await.status, 404);
    }
    let answer = client.get("/items/1").await;
    assert_eq!(answer.problem().violated_policies, ["api.1m"]);
    assert_eq!((answer.limits()[0].r, answer.limits()[0].t), (0, answer.retry_after()));
}

#[tokio::test]
async fn a_limit_takes_the_client_of_the_layer_around_it() {
    let layer = Layer::new().client_ip(ClientIp::behind(["127.0.0.1"]).unwrap()).on_success(true);
    let client = Client::new(serve(Some(layer), Some(limit(1, "{@ip}"))).await);
    let get = async |client_ip: &str| client.get_with("/items/1", &[("x-forwarded-for", client_ip)]).await;
    assert_eq!(get("203.0.113.9").await.limits()[0].r, 0);
    assert_eq!(get("203.0.113.9").await.status, 429);
    assert_eq!(get("203.0.113.10").await.status, 200);
}
