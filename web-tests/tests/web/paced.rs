//! Calls of hyper's client to servers, paced by a layer.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body as AxumBody;
use axum::routing::any;
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::{Request, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tallygate::client::{self, Heard, HeardPause, Pace, PaceError, PaceService};
use tallygate::web::Layer as WebLayer;
use tallygate::{Limiter, Policy, RejectionKind, Rule, Subject, context, web};
use tallygate_web_tests::server::serve;
use tower::buffer::Buffer;
use tower::{Layer as _, Service as _, ServiceExt as _};

mod grpc;
mod metered;
mod middleware;
mod pauses;
mod remainders;
mod retries;
mod within;

const MINUTE: Duration = Duration::from_secs(60);

/// The body of a request, which notes that it was read.
#[derive(Clone, Default)]
struct Noted(Arc<AtomicUsize>);

impl Body for Noted {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Poll::Ready(None)
    }
}

type Paced = PaceService<Client<HttpConnector, Noted>>;

fn paced(pace: client::Pace) -> Paced {
    pace.limiter(&Limiter::in_memory()).layer(Client::builder(TokioExecutor::new()).build_http())
}

fn policy(rules: impl IntoIterator<Item = Rule>) -> Policy {
    Policy::builder("partner").rules(rules).build().unwrap()
}

fn pace(rules: impl IntoIterator<Item = Rule>, key: &str) -> Pace {
    client::pace(&policy(rules), key).unwrap()
}

fn per_minute(count: u64) -> Rule {
    Rule::sliding_window(count, MINUTE)
}

/// A server, and the paths that were asked for.
struct Partner {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Partner {
    async fn start() -> Self {
        Self::answering(|router| router).await
    }

    async fn answering(layers: impl FnOnce(Router) -> Router) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        let answer = async move |request: Request<AxumBody>| {
            noted.lock().unwrap().push(request.uri().path().to_owned());
            "well"
        };
        let router = Router::new().route("/{*path}", any(answer.clone())).route("/", any(answer));
        Self { address: serve(layers(router)).await, asked }
    }

    fn request(&self, path: &str) -> Request<Noted> {
        Request::get(format!("http://{}{path}", self.address)).body(Noted::default()).unwrap()
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// The kind of the rejection; `None` if there is a response.
async fn rejected(client: &Paced, request: Request<Noted>) -> Option<RejectionKind> {
    match client.clone().oneshot(request).await {
        Ok(_) => None,
        Err(error) => Some(error.rejection().expect("a rejection").kind()),
    }
}

#[tokio::test]
async fn a_call_beyond_the_pace_is_not_sent_and_its_body_is_not_read() {
    let partner = Partner::start().await;
    let client = paced(pace([per_minute(2)], "{@host}"));
    for path in ["/1", "/2"] {
        assert_eq!(client.clone().oneshot(partner.request(path)).await.unwrap().status(), StatusCode::OK);
    }
    let body = Noted::default();
    let request = partner.request("/3").map(|_| body.clone());
    let error = client.clone().oneshot(request).await.unwrap_err();
    let rejection = error.rejection().unwrap();
    assert_eq!((rejection.kind(), rejection.policy()), (RejectionKind::Limited, "partner"));
    assert!(rejection.retry_after().is_some_and(|wait| wait <= MINUTE));
    assert_eq!(error.to_string(), format!("the call was not sent: {rejection}"));
    assert!(std::error::Error::source(&error).unwrap().is::<tallygate::Rejection>());
    assert_eq!((body.0.load(Ordering::SeqCst), partner.asked()), (0, vec!["/1".to_owned(), "/2".to_owned()]));
}

#[tokio::test]
async fn calls_wait_for_their_turn_in_order() {
    let partner = Partner::start().await;
    let pace = pace([Rule::sliding_window(1, Duration::from_millis(30))], "{@host}").wait(MINUTE);
    let client = paced(pace);
    let paths: Vec<_> = (0..8).map(|number| format!("/{number}")).collect();
    let calls = paths.iter().map(|path| client.clone().oneshot(partner.request(path)));
    for answer in join_all(calls).await {
        assert_eq!(answer.unwrap().status(), StatusCode::OK);
    }
    assert_eq!(partner.asked(), paths);
}

#[tokio::test]
async fn a_call_that_would_wait_for_too_long_fails_at_once() {
    let partner = Partner::start().await;
    let client = paced(pace([per_minute(1)], "{@host}").wait(Duration::from_secs(5)));
    assert_eq!(rejected(&client, partner.request("/")).await, None);
    let late = tokio::time::timeout(Duration::from_secs(4), rejected(&client, partner.request("/"))).await;
    assert_eq!(late, Ok(Some(RejectionKind::Limited)));
}

/// Who pays for a call.
#[derive(Clone)]
struct Account(&'static str);

#[tokio::test]
async fn the_key_shows_the_host_the_method_a_header_and_values_of_the_request() {
    let partner = Partner::start().await;
    let port = partner.address.port();
    let other_host = || Request::get(format!("http://LOCALHOST:{port}/")).body(Noted::default()).unwrap();
    let is_limited = async |client: &Paced, request| rejected(client, request).await.is_some();

    let client = paced(pace([per_minute(1)], "{@host}"));
    assert!(!is_limited(&client, partner.request("/a")).await);
    assert!(is_limited(&client, partner.request("/b")).await);
    assert!(!is_limited(&client, other_host()).await);
    assert!(is_limited(&client, other_host()).await);

    let client = paced(pace([per_minute(1)], "{@method} {@header_x_api_key}"));
    let with_key = |method: &str, key: &str| {
        let mut request = partner.request("/");
        *request.method_mut() = method.parse().unwrap();
        request.headers_mut().insert("x-api-key", key.parse().unwrap());
        request
    };
    for (method, key) in [("GET", "a"), ("GET", "b"), ("POST", "a")] {
        assert!(!is_limited(&client, with_key(method, key)).await);
        assert!(is_limited(&client, with_key(method, key)).await);
    }

    let find = |request: &http::request::Parts| request.extensions.get::<Account>().map(|account| account.0.to_owned());
    let client = paced(pace([per_minute(1)], "{@account}").value("account", find));
    let of_account = |name| {
        let mut request = partner.request("/");
        request.extensions_mut().insert(Account(name));
        request
    };
    assert!(!is_limited(&client, of_account("alice")).await);
    assert!(is_limited(&client, of_account("alice")).await);
    assert!(!is_limited(&client, of_account("bob")).await);
    assert_eq!(rejected(&client, partner.request("/")).await, Some(RejectionKind::Unidentified));
}

#[tokio::test]
async fn a_request_without_a_host_is_unidentified_and_the_remedy_is_one_of_a_pace() {
    let client = paced(pace([per_minute(1)], "{@host}"));
    let error = client.oneshot(Request::get("/").body(Noted::default()).unwrap()).await.unwrap_err();
    let rejection = error.rejection().unwrap();
    assert_eq!(rejection.kind(), RejectionKind::Unidentified);
    let source = std::error::Error::source(rejection).unwrap().to_string();
    assert!(source.contains("lacks `{@host}`") && source.contains("`Pace::value`"), "{source}");
    let unknown = paced(pace([per_minute(1)], "{@account}"));
    let error = unknown.oneshot(Request::get("/").body(Noted::default()).unwrap()).await.unwrap_err();
    let source = std::error::Error::source(error.rejection().unwrap()).unwrap().to_string();
    assert!(source.contains("add it with `Pace::value`"), "{source}");
}

#[tokio::test]
async fn a_value_that_a_call_lacks_is_not_that_of_the_request_which_the_program_answers_meanwhile() {
    let partner = Partner::start().await;
    let around = || {
        let values = [("account", "outer"), ("host", "outer"), ("header_x_api_key", "outer"), ("user", "alice")];
        values.into_iter().fold(context::Context::new(), |context, (name, value)| context.with(name, value))
    };
    let within = |client: &Paced| {
        let (client, request) = (client.clone(), partner.request("/"));
        context::scope(around(), async move { rejected(&client, request).await })
    };
    let client = paced(pace([per_minute(1)], "{@account}").value("account", |_| None::<String>));
    assert_eq!(within(&client).await, Some(RejectionKind::Unidentified));

    // The same requests, in a context and without one.
    let client = paced(pace([per_minute(2)], "{@host} {@header_x_api_key}"));
    assert_eq!(within(&client).await, None);
    assert_eq!(rejected(&client, partner.request("/")).await, None);
    assert_eq!(within(&client).await, Some(RejectionKind::Limited));

    // What only the context has is shown.
    let client = paced(pace([per_minute(1)], "{@user}"));
    assert_eq!(within(&client).await, None);
    assert_eq!(within(&client).await, Some(RejectionKind::Limited));
}

#[tokio::test]
async fn a_call_costs_what_it_uses_of_each_unit() {
    let partner = Partner::start().await;
    let tokens = |request: &http::request::Parts| request.uri.path().trim_start_matches('/').parse().unwrap_or(0);
    let pace = pace([per_minute(10), per_minute(1_000).counting("tokens")], "{@host}");
    let client = paced(pace.cost_of("tokens", tokens).unwrap().cost(|_| 2));
    assert_eq!(rejected(&client, partner.request("/900")).await, None);
    assert_eq!(rejected(&client, partner.request("/101")).await, Some(RejectionKind::Limited));
    for _ in 0..4 {
        assert_eq!(rejected(&client, partner.request("/25")).await, None);
    }
    assert_eq!(rejected(&client, partner.request("/0")).await, Some(RejectionKind::Limited));
    let mistake = client::pace(&policy([per_minute(1)]), "all").unwrap().cost_of("tokens", |_| 1).unwrap_err();
    assert!(mistake.to_string().starts_with("`cost_of`: "), "{mistake}");
}

#[tokio::test]
async fn a_concurrent_call_runs_until_the_body_of_its_response_ends() {
    let endless =
        || async { AxumBody::from_stream(stream::once(async { Ok::<_, Infallible>("a") }).chain(stream::pending())) };
    let partner = Partner::answering(|router| router.route("/endless", any(endless))).await;
    let client = paced(pace([Rule::concurrency(1, MINUTE)], "{@host}"));
    let running = client.clone().oneshot(partner.request("/endless")).await.unwrap();
    assert_eq!(rejected(&client, partner.request("/")).await, Some(RejectionKind::Concurrency));
    drop(running);
    assert_eq!(rejected(&client, partner.request("/")).await, None);
}

#[tokio::test]
async fn a_concurrent_call_has_ended_with_the_last_piece_of_its_response_although_that_is_kept() {
    let empty = any(async || StatusCode::NO_CONTENT);
    let partner = Partner::answering(|router| router.route("/empty", empty)).await;
    let client = paced(pace([Rule::concurrency(1, MINUTE)], "{@host}"));
    let kept = client.clone().oneshot(partner.request("/empty")).await.unwrap();
    let mut answer = client.clone().oneshot(partner.request("/")).await.unwrap();
    assert_eq!(rejected(&client, partner.request("/")).await, Some(RejectionKind::Concurrency));
    let piece = answer.frame().await.unwrap().unwrap();
    assert_eq!(piece.data_ref().unwrap(), "well");
    assert_eq!(rejected(&client, partner.request("/")).await, None);
    drop((kept, answer));
}

/// A client that is never ready.
#[derive(Clone)]
struct Busy;

impl tower::Service<Request<Noted>> for Busy {
    type Response = http::Response<AxumBody>;
    type Error = Infallible;
    type Future = std::future::Pending<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Pending
    }

    fn call(&mut self, _: Request<Noted>) -> Self::Future {
        std::future::pending()
    }
}

#[tokio::test]
async fn a_call_counts_only_once_its_client_is_ready() {
    let partner = Partner::start().await;
    let pace = pace([per_minute(1)], "{@host}").limiter(&Limiter::in_memory());
    assert!(pace.layer(Busy).oneshot(partner.request("/")).now_or_never().is_none());
    let client: Paced = pace.layer(Client::builder(TokioExecutor::new()).build_http());
    assert_eq!(rejected(&client, partner.request("/")).await, None);
}

#[tokio::test]
async fn what_the_response_says_of_limits_is_in_its_extensions() {
    let limit = web::limit(&policy([per_minute(2)]), "all").unwrap().limiter(&Limiter::in_memory());
    let partner = Partner::answering(|router| router.layer(limit).layer(WebLayer::new().on_success(true))).await;
    let client = paced(pace([per_minute(100)], "{@host}"));
    let heard = async || {
        let response = client.clone().oneshot(partner.request("/")).await.unwrap();
        (response.status().as_u16(), response.extensions().get::<Heard>().unwrap().clone())
    };
    let (status, first) = heard().await;
    assert_eq!((status, first.wait(), first.limits()[0].remaining()), (200, None, Some(1)));
    let (status, second) = heard().await;
    assert_eq!((status, second.pause(), second.spacing()), (200, None, Some(MINUTE)));
    let (status, denied) = heard().await;
    assert_eq!((status, denied.pause().and_then(HeardPause::field)), (429, Some("retry-after")));
}

#[tokio::test]
async fn a_client_that_fails_says_so() {
    let gone = SocketAddr::from(([127, 0, 0, 1], 1));
    let mut client = paced(pace([per_minute(1)], "{@host}"));
    let request = || Request::get(format!("http://{gone}/")).body(Noted::default()).unwrap();
    assert!(matches!(client.call(request()).await, Err(PaceError::Client(_))));
    // It was sent, as far as anyone knows.
    assert!(matches!(client.call(request()).await, Err(PaceError::Rejected(_))));
}

#[tokio::test]
async fn a_pace_stands_between_layers_whose_errors_are_boxed() {
    let gone = SocketAddr::from(([127, 0, 0, 1], 1));
    let boxed = Buffer::new(Client::builder(TokioExecutor::new()).build_http::<Noted>(), 1);
    let pace = pace([per_minute(1)], "{@host}").limiter(&Limiter::in_memory());
    let client = Buffer::new(pace.layer(boxed), 1);
    let call = async || {
        let request = Request::get(format!("http://{gone}/")).body(Noted::default()).unwrap();
        let error = client.clone().oneshot(request).await.map(drop).unwrap_err();
        *error.downcast::<PaceError>().unwrap()
    };
    assert!(matches!(call().await, PaceError::Client(error) if error.is::<hyper_util::client::legacy::Error>()));
    assert!(matches!(call().await, PaceError::Rejected(_)));
}

#[test]
fn a_mistake_in_the_key_says_what_to_write_instead() {
    let mistake = |key| client::pace(&policy([per_minute(1)]), key).unwrap_err().to_string();
    assert!(mistake("").starts_with("`key`: it must not be empty"));
    assert!(mistake("@host").contains("`key`: "));
}
