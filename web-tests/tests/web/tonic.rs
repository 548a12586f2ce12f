//! Limits in tonic, called over sockets by a client.

mod grpc_web;
mod streams;
pub(crate) mod text;

use std::net::SocketAddr;
use std::time::Duration;

use tallygate::context::Context;
use tallygate::web::{self, ClientIp, Layer, Legacy, Limit};
use tallygate::{Limiter, Policy, Rule, Subject, rate_limit};
use tallygate_web_tests::LimitItem;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tonic::metadata::MetadataMap;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status};
use tonic_types::StatusExt as _;

use self::text::{Captcha, call};

const MINUTE: Duration = Duration::from_secs(60);

#[rate_limit(name = "captcha", key = "{phone}", rule(count = 3, per = "60s"), limiter = limiter)]
async fn send(limiter: Limiter, phone: String) -> Result<Response<String>, Status> {
    let _ = limiter;
    Ok(Response::new(format!("sent to {phone}")))
}

#[rate_limit(
    name = "chat",
    unit("tokens", cost = 400),
    rule(count = 3, per = "60s"),
    rule(count = 500, per = "60s", unit = "tokens"),
    limiter = limiter
)]
async fn chat(limiter: Limiter) -> Result<Response<String>, Status> {
    let _ = limiter;
    Ok(Response::new("said".to_owned()))
}

#[rate_limit(name = "twice", key = "{phone}", prevent_duplicate, limiter = limiter)]
async fn draw(limiter: Limiter, phone: String) -> Result<Response<String>, Status> {
    let _ = limiter;
    Ok(Response::new(format!("drawn by {phone}")))
}

/// Admits one call of each client.
#[rate_limit(name = "once", key = "{@ip}", rule(count = 1, per = "60s"), limiter = limiter)]
async fn once(limiter: Limiter) -> Result<Response<String>, Status> {
    let _ = limiter;
    Ok(Response::new(Context::current().unwrap().get("ip").unwrap().to_owned()))
}

/// Asks a server that is not there.
async fn by_hand() -> Result<Response<String>, Status> {
    let policy = Policy::builder("by hand").rule(Rule::sliding_window(1, MINUTE)).build().unwrap();
    let away = Limiter::builder().connect_lazy("redis://127.0.0.1:1/").unwrap();
    let decision = away.check(&policy, &Subject::everyone()).await?;
    Ok(Response::new(if decision.is_allowed() { "sent" } else { "denied" }.to_owned()))
}

async fn answer(limiter: Limiter, method: String, request: Request<String>) -> Result<Response<String>, Status> {
    let client = request.extensions().get::<ClientIp>().copied();
    match method.as_str() {
        "Send" => send(limiter, request.into_inner()).await,
        "Draw" => draw(limiter, request.into_inner()).await,
        "Once" => once(limiter).await,
        "Chat" => chat(limiter).await,
        "ByHand" => by_hand().await,
        _ => Ok(Response::new(client.map_or("nobody".to_owned(), |client| client.address().to_string()))),
    }
}

pub(crate) async fn serve(layer: Option<Layer>, limit: Option<Limit>) -> SocketAddr {
    let limiter = Limiter::in_memory();
    let captcha = Captcha(move |method, request| answer(limiter.clone(), method, request));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let incoming = TcpIncoming::from(listener);
    tokio::spawn(async move {
        match (layer, limit) {
            (Some(layer), None) => {
                Server::builder().layer(layer).add_service(captcha).serve_with_incoming(incoming).await
            }
            (None, Some(limit)) => {
                Server::builder().layer(limit).add_service(captcha).serve_with_incoming(incoming).await
            }
            (Some(layer), Some(limit)) => {
                let mut server = Server::builder().layer(layer).layer(limit);
                server.add_service(captcha).serve_with_incoming(incoming).await
            }
            (None, None) => Server::builder().add_service(captcha).serve_with_incoming(incoming).await,
        }
    });
    address
}

/// The items of `RateLimit`.
fn limits(metadata: &MetadataMap) -> Vec<LimitItem> {
    LimitItem::list(metadata.get("ratelimit").map(|value| value.to_str().unwrap()))
}

/// The only item of `RateLimit`, without its window.
fn remaining(metadata: &MetadataMap) -> (String, u64) {
    let [LimitItem { name, r, t }] = limits(metadata).try_into().unwrap();
    assert!(t.is_some_and(|window_s| window_s <= 60), "{t:?}");
    (name, r)
}

#[tokio::test]
async fn a_rejection_is_a_status_with_the_time_to_retry() {
    let server = serve(Some(Layer::new().on_success(true)), None).await;
    for remaining in [2, 1, 0] {
        let response = call(server, "Send", "138", &[]).await.unwrap();
        assert_eq!(self::remaining(response.metadata()), ("captcha.1m".into(), remaining));
    }
    let status = call(server, "Send", "138", &[]).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().starts_with("too many requests: at most 3 per 1m"), "{status}");
    let wait = status.get_details_retry_info().unwrap().retry_delay.unwrap();
    assert!(wait <= MINUTE && wait > MINUTE / 2, "{wait:?}");
    assert_eq!(status.get_details_quota_failure().unwrap().violations[0].subject, "captcha.1m");
    assert_eq!(remaining(status.metadata()), ("captcha.1m".into(), 0));
    assert!(call(server, "Send", "139", &[]).await.is_ok());
}

#[tokio::test]
async fn each_unit_has_its_fields() {
    let server = serve(Some(Layer::new().on_success(true).legacy(Legacy::XRateLimitByUnit)), None).await;
    let remaining = |metadata: &MetadataMap| {
        let of_unit =
            |unit: &str| metadata.get(format!("x-ratelimit-remaining-{unit}"))?.to_str().ok().map(str::to_owned);
        [of_unit("requests"), of_unit("tokens")]
    };
    let left = [Some("2".to_owned()), Some("100".to_owned())];
    assert_eq!(remaining(call(server, "Chat", "", &[]).await.unwrap().metadata()), left);
    let status = call(server, "Chat", "", &[]).await.unwrap_err();
    assert_eq!(remaining(status.metadata()), left);
    assert_eq!(status.get_details_quota_failure().unwrap().violations[0].subject, "chat.tokens.1m");
    assert!(status.message().starts_with("too many tokens: at most 500 per 1m"), "{status}");
}

#[tokio::test]
async fn an_error_of_the_backend_is_a_status() {
    let status = call(serve(None, None).await, "ByHand", "138", &[]).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(status.message(), "the rate limit cannot be checked right now; try again later");
}

#[tokio::test]
async fn a_duplicate_already_exists() {
    let server = serve(None, None).await;
    assert_eq!(call(server, "Draw", "138", &[]).await.unwrap().into_inner(), "drawn by 138");
    let status = call(server, "Draw", "138", &[]).await.unwrap_err();
    assert_eq!(status.code(), Code::AlreadyExists);
    assert!(status.get_details_retry_info().is_some());
}

#[tokio::test]
async fn the_client_is_the_socket_or_what_proxies_say() {
    let server = serve(Some(Layer::new()), None).await;
    assert_eq!(call(server, "Who", "", &[("x-forwarded-for", "203.0.113.9")]).await.unwrap().into_inner(), "127.0.0.1");
    assert_eq!(call(server, "Once", "", &[]).await.unwrap().into_inner(), "127.0.0.1");
    assert_eq!(call(server, "Once", "", &[]).await.unwrap_err().code(), Code::ResourceExhausted);

    let server = serve(Some(Layer::new().client_ip(ClientIp::behind(["127.0.0.1"]).unwrap())), None).await;
    for client in ["203.0.113.9", "203.0.113.10"] {
        let fields = [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", client)];
        assert_eq!(call(server, "Once", "", &fields).await.unwrap().into_inner(), client);
        assert_eq!(call(server, "Once", "", &fields).await.unwrap_err().code(), Code::ResourceExhausted);
    }
}

#[tokio::test]
async fn clients_behind_a_proxy_that_writes_the_standard_field_have_tallies_of_their_own() {
    let source = ClientIp::behind(["127.0.0.1"]).unwrap().forwarded();
    let server = serve(Some(Layer::new().client_ip(source)), None).await;
    for (client, hop) in [
        ("2001:db8:1:2::/64", r#"for="[2001:db8:1:2::17]:_p""#),
        ("2001:db8:1:3::/64", r#"for="[2001:db8:1:3::17]:_p";host="a\"b""#),
    ] {
        assert_eq!(call(server, "Once", "", &[("forwarded", hop)]).await.unwrap().into_inner(), client);
        let forged = [("forwarded", r#"for="192.0.2.1\"#), ("forwarded", hop)];
        assert_eq!(call(server, "Once", "", &forged).await.unwrap_err().code(), Code::ResourceExhausted);
    }
}

#[tokio::test]
async fn a_limit_around_the_server_whose_key_shows_a_missing_value_is_a_mistake_of_the_service() {
    let policy = Policy::builder("api").rule(Rule::sliding_window(1, MINUTE)).build().unwrap();
    let limit = web::limit(&policy, "{@user}").unwrap().limiter(&Limiter::in_memory());
    let status = call(serve(Some(Layer::new()), Some(limit)).await, "Who", "", &[]).await.unwrap_err();
    assert_eq!((status.code(), status.get_details_retry_info().is_none()), (Code::Internal, true));
}

#[tokio::test]
async fn without_a_layer_a_call_that_needs_the_client_is_a_mistake_of_the_service() {
    let server = serve(None, None).await;
    let status = call(server, "Once", "", &[]).await.unwrap_err();
    assert_eq!((status.code(), status.get_details_retry_info().is_none()), (Code::Internal, true));
    assert_eq!(status.message(), "the rate limit cannot be checked because of a mistake in the service");
    assert_eq!(call(server, "Who", "", &[]).await.unwrap().into_inner(), "nobody");
}

#[tokio::test]
async fn a_limit_around_the_server_answers_with_a_status() {
    let policy = Policy::builder("api").rule(Rule::sliding_window(1, MINUTE)).build().unwrap();
    let limit = web::limit(&policy, "{@ip} {@path}").unwrap().limiter(&Limiter::in_memory());
    let server = serve(None, Some(limit)).await;
    assert!(call(server, "Send", "138", &[]).await.is_ok());
    let status = call(server, "Send", "139", &[]).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.get_details_retry_info().is_some());
    assert_eq!(remaining(status.metadata()), ("api.1m".into(), 0));
    assert!(call(server, "Draw", "138", &[]).await.is_ok());
}

#[tokio::test]
async fn a_limit_inside_of_a_layer_counts_the_client_that_the_layer_has_found() {
    let policy = Policy::builder("api").rule(Rule::sliding_window(1, MINUTE)).build().unwrap();
    let limit = web::limit(&policy, "{@ip}").unwrap().limiter(&Limiter::in_memory());
    let layer = Layer::new().client_ip(ClientIp::behind(["127.0.0.1"]).unwrap()).on_success(true);
    let server = serve(Some(layer), Some(limit)).await;
    for client in ["203.0.113.9", "203.0.113.10"] {
        let fields = [("x-forwarded-for", client)];
        let response = call(server, "Who", "", &fields).await.unwrap();
        assert_eq!(remaining(response.metadata()), ("api.1m".into(), 0));
        assert_eq!(response.into_inner(), client);
        let status = call(server, "Who", "", &fields).await.unwrap_err();
        assert_eq!((status.code(), remaining(status.metadata())), (Code::ResourceExhausted, ("api.1m".into(), 0)));
    }
}

#[tokio::test]
async fn fifty_connections_admit_exactly_the_count() {
    let server = serve(Some(Layer::new()), None).await;
    let mut calls = JoinSet::new();
    for _ in 0..50 {
        calls.spawn(async move { call(server, "Send", "138", &[]).await.is_ok() });
    }
    assert_eq!(calls.join_all().await.into_iter().filter(|admitted| *admitted).count(), 3);
}
