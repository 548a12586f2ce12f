//! Who is calling: by the socket, by proxies, by values of the application.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::IntoResponse;
use axum::routing::get;
use futures_util::StreamExt as _;
use tallygate::context::{self, Context};
use tallygate::testing::ManualClock;
use tallygate::web::{ClientIp, ClientIpSource, Layer};
use tallygate::{Limiter, Rejection, rate_limit};
use tallygate_harness::until::until;
use tallygate_web_tests::server::serve;
use tallygate_web_tests::{Client, Http};
use tower::ServiceBuilder;

/// Admits one call of each client and user.
#[rate_limit(name = "once", key = "{@ip}/{@user}", rule(count = 1, per = "1h"), limiter = limiter)]
async fn once(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

async fn handler(State(limiter): State<Limiter>) -> Result<String, Rejection> {
    once(&limiter).await?;
    let context = Context::current().unwrap();
    Ok(format!("{} {}", context.get("ip").unwrap(), context.get("user").unwrap()))
}

async fn whoami(client: ClientIp) -> String {
    client.address().to_string()
}

async fn maybe(client: Option<ClientIp>) -> String {
    client.is_some().to_string()
}

fn router() -> Router {
    let routes = Router::new().route("/", get(handler)).route("/whoami", get(whoami)).route("/maybe", get(maybe));
    routes.with_state(Limiter::in_memory())
}

fn layer() -> Layer {
    Layer::new().value("user", |parts| parts.header("x-user").map(str::to_owned))
}

fn behind_local_proxies() -> ClientIpSource {
    ClientIp::behind(["127.0.0.0/8"]).unwrap()
}

#[tokio::test]
async fn each_client_behind_a_proxy_has_a_tally_of_its_own() {
    let client = Client::new(serve(router().layer(layer().client_ip(behind_local_proxies()))).await);
    let get = async |forwarded: &str, user: &str| {
        let answer = client.get_with("/", &[("x-forwarded-for", forwarded), ("x-user", user)]).await;
        (answer.status, answer.body)
    };
    assert_eq!(get("203.0.113.9", "alice").await, (200, "203.0.113.9 alice".into()));
    assert_eq!(get("203.0.113.9", "alice").await.0, 429);
    assert_eq!(get("203.0.113.9", "bob").await, (200, "203.0.113.9 bob".into()));
    assert_eq!(get("2001:db8:1:2::7", "alice").await, (200, "2001:db8:1:2::/64 alice".into()));
    assert_eq!(get("2001:db8:1:2::8", "alice").await.0, 429, "the same network");
    // A forged entry before the one that the proxy has added.
    assert_eq!(get("198.51.100.1, 203.0.113.9", "alice").await.0, 429);
    assert_eq!(get(&format!("{}203.0.113.9", "198.51.100.1,".repeat(300)), "alice").await.0, 429);
}

#[tokio::test]
async fn each_client_behind_a_proxy_that_writes_the_standard_field_has_a_tally_of_its_own() {
    let client = Client::new(serve(router().layer(layer().client_ip(behind_local_proxies().forwarded()))).await);
    let get = async |forwarded: &str| {
        let answer = client.get_with("/", &[("forwarded", forwarded), ("x-user", "alice")]).await;
        (answer.status, answer.body)
    };
    assert_eq!(get(r#"for="[2001:db8:1:2::17]:_p""#).await, (200, "2001:db8:1:2::/64 alice".into()));
    assert_eq!(get(r#"for="[2001:db8:1:3::17]:_p";host="a\"b""#).await, (200, "2001:db8:1:3::/64 alice".into()));
    for forged in [r"for=192.0.2.1", r#"for="192.0.2.1"#, r#"for="192.0.2.1\"#, r#"for=192.0.2.1;host="\""#] {
        assert_eq!(get(&format!(r#"{forged}, for="[2001:db8:1:2::18]:_q";host="a\"b""#)).await.0, 429, "{forged}");
    }
}

#[tokio::test]
async fn a_client_that_connects_itself_cannot_choose_its_address() {
    let elsewhere = ClientIp::behind(["10.0.0.0/8"]).unwrap();
    for source in [ClientIp::socket(), elsewhere] {
        let client = Client::new(serve(router().layer(layer().client_ip(source))).await);
        let get = async |name: &str, value: &str| client.get_with("/", &[(name, value), ("x-user", "a")]).await;
        let answer = get("x-forwarded-for", "203.0.113.9").await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "127.0.0.1 a"));
        for forged in ["198.51.100.1", "127.0.0.2", "", "\"", "::1"] {
            assert_eq!(get("x-forwarded-for", forged).await.status, 429);
            assert_eq!(get("forwarded", &format!("for={forged}")).await.status, 429);
        }
    }
}

#[tokio::test]
async fn several_lines_of_a_field_are_one_list() {
    let client = Client::new(serve(router().layer(Layer::new().client_ip(behind_local_proxies()))).await);
    let lines = [("x-forwarded-for", "198.51.100.1"), ("x-forwarded-for", "203.0.113.9, 127.0.0.7")];
    assert_eq!(client.get_with("/whoami", &lines).await.body, "203.0.113.9");
    let network = Client::new(
        serve(router().layer(Layer::new().client_ip(behind_local_proxies().header("x-real-ip").unwrap()))).await,
    );
    assert_eq!(network.get_with("/whoami", &[("x-real-ip", "2001:db8::7")]).await.body, "2001:db8::7");
    assert_eq!(network.get_with("/whoami", &[("x-real-ip", "::1"), ("x-real-ip", "::2")]).await.body, "127.0.0.1");
}

#[tokio::test]
async fn a_value_that_is_missing_rejects_the_call_and_names_no_secret() {
    let client = Client::new(serve(router().layer(Layer::new())).await);
    let answer = client.get_with("/", &[("x-user", "a")]).await;
    assert_eq!((answer.status, answer.retry_after()), (500, None));
    let problem = answer.problem();
    assert_eq!((problem.kind.as_str(), problem.violated_policies.len()), ("unavailable", 0));
    assert_eq!(problem.detail, "the rate limit cannot be checked because of a mistake in the service");
}

#[tokio::test]
async fn a_value_that_one_request_lacks_is_the_business_of_that_request() {
    let client = Client::new(serve(router().layer(layer())).await);
    let answer = client.get("/").await;
    assert_eq!((answer.status, answer.retry_after()), (401, None));
    let problem = answer.problem();
    assert_eq!((problem.kind.as_str(), problem.violated_policies.len()), ("unidentified", 0));
    assert_eq!(problem.detail, "the request lacks what its rate limit counts by, such as who has signed in");
    assert_eq!(client.get_with("/", &[("x-user", "a")]).await.status, 200);
}

#[tokio::test]
async fn without_a_layer_no_handler_takes_another_client_for_its_own() {
    let client = Client::new(serve(router()).await);
    assert_eq!(client.get_with("/", &[("x-user", "a")]).await.status, 500);
    let answer = client.get("/whoami").await;
    assert_eq!((answer.status, answer.body.as_str()), (500, ""));
    assert_eq!(client.get("/maybe").await.body, "false");
    let client = Client::new(serve(router().layer(layer())).await);
    assert_eq!(
        (client.get("/whoami").await.body, client.get("/maybe").await.body),
        ("127.0.0.1".into(), "true".into())
    );
}

#[tokio::test]
async fn a_router_that_does_not_know_its_sockets_rejects_calls() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router().layer(layer())).await });
    let answer = Client::new(server).get_with("/", &[("x-user", "a")]).await;
    assert_eq!((answer.status, answer.problem().kind.as_str()), (500, "unavailable"));
}

#[tokio::test]
async fn a_buffer_between_the_layer_and_the_handler_changes_nothing() {
    let stack = ServiceBuilder::new()
        .layer(axum::error_handling::HandleErrorLayer::new(async |_| "the buffer failed"))
        .buffer::<axum::extract::Request>(8);
    let router = router().layer(stack).layer(layer());
    let client = Client::new(serve(router).await);
    for status in [200, 429] {
        let answer = client.get_with("/", &[("x-user", "a")]).await;
        assert_eq!((answer.status, answer.limits().len()), (status, usize::from(status == 429)));
    }
}

#[tokio::test]
async fn an_inner_layer_adds_values_and_keeps_those_of_the_outer_one() {
    let inner = router().route("/tenant", get(tenant)).layer(layer().client_ip(ClientIp::hops(1).unwrap()));
    let outer = inner.layer(Layer::new().value("tenant", |_| Some("shop")).value("user", |_| Some("nobody")));
    let client = Client::new(serve(outer).await);
    let get = async |path| client.get_with(path, &[("x-user", "a"), ("x-forwarded-for", "203.0.113.9")]).await.body;
    assert_eq!(get("/").await, "203.0.113.9 a", "those of the inner one go first");
    assert_eq!(get("/tenant").await, "shop");

    // One that does not know of the proxy leaves the client that the outer one has found.
    let client =
        Client::new(serve(router().layer(layer()).layer(Layer::new().client_ip(behind_local_proxies()))).await);
    let get = async |path| client.get_with(path, &[("x-user", "a"), ("x-forwarded-for", "203.0.113.9")]).await.body;
    assert_eq!([get("/").await, get("/whoami").await], ["203.0.113.9 a", "203.0.113.9"]);
}

async fn tenant() -> String {
    Context::current().and_then(|context| context.get("tenant").map(str::to_owned)).unwrap_or_default()
}

/// Streams what it knows of its client, with the context and without.
async fn streams() -> impl IntoResponse {
    let ip = || Context::current().and_then(|context| context.get("ip").map(str::to_owned)).unwrap_or("-".into());
    let taken_along = Context::current().unwrap();
    let parts = [Some(taken_along), None].map(|taken_along| async move {
        let ip = async { ip() };
        Ok::<_, Infallible>(match taken_along {
            Some(context) => context::scope(context, ip).await,
            None => ip.await,
        })
    });
    axum::body::Body::from_stream(futures_util::stream::iter(parts).then(|part| part))
}

#[tokio::test]
async fn a_streamed_body_has_the_context_only_if_it_takes_it_along() {
    let router = Router::new().route("/", get(streams)).layer(Layer::new());
    assert_eq!(Client::new(serve(router).await).get("/").await.body, "127.0.0.1-");
}

/// What the requests of a server share.
#[derive(Clone)]
struct Shared {
    limiter: Limiter,
    /// The requests that are there: they wait, or run.
    present: Arc<AtomicUsize>,
    started: Arc<AtomicUsize>,
}

/// A request that is there.
struct Present(Arc<AtomicUsize>);

impl FromRequestParts<Shared> for Present {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, shared: &Shared) -> Result<Self, Infallible> {
        shared.present.fetch_add(1, Ordering::Relaxed);
        Ok(Self(Arc::clone(&shared.present)))
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[rate_limit(name = "waits", rule(count = 1, per = "3s"), wait = "60s", limiter = shared.limiter)]
async fn waits(State(shared): State<Shared>, _present: Present) -> Result<&'static str, Rejection> {
    shared.started.fetch_add(1, Ordering::Relaxed);
    Ok("ran")
}

/// Asks twenty times and goes away while all of them wait: by HTTP/1, each over a connection of its own; by HTTP/2, all over
/// the one that stays.
async fn go_away_while_waiting(http: Http) {
    let clock = ManualClock::new(SystemTime::now());
    let limiter = Limiter::builder().clock(&clock).build_in_memory().unwrap();
    let shared = Shared { limiter, present: Arc::default(), started: Arc::default() };
    let (present, started) = (Arc::clone(&shared.present), Arc::clone(&shared.started));
    let server = serve(Router::new().route("/", get(waits)).with_state(shared)).await;
    let stays = Client::by(http, server);
    let leaving = |_| if http == Http::Two { stays.clone() } else { Client::by(http, server) };
    let leaves: Vec<_> = (0..20).map(leaving).collect();
    assert_eq!(stays.get("/").await.body, "ran");
    let requests = leaves.iter().map(|client| client.request(reqwest::Method::GET, "/", &[]));
    let waiting: Vec<_> = requests.map(|request| tokio::spawn(request.send())).collect();
    until("all have arrived", || present.load(Ordering::Relaxed) == 20).await;
    for left in waiting {
        left.abort();
        assert!(left.await.unwrap_err().is_cancelled(), "it went away before it was answered");
    }
    until("all are gone", || present.load(Ordering::Relaxed) == 0).await;
    clock.advance(Duration::from_secs(3));
    // If one of the twenty were still in the queue, this one would wait for it.
    assert_eq!(stays.get("/").await.body, "ran", "{http:?}");
    assert_eq!(started.load(Ordering::Relaxed), 2, "{http:?}");
}

#[tokio::test]
async fn clients_that_go_away_while_they_wait_are_not_counted() {
    go_away_while_waiting(Http::One).await;
}

#[tokio::test]
async fn streams_of_a_connection_that_are_reset_while_they_wait_are_not_counted() {
    go_away_while_waiting(Http::Two).await;
}

#[rate_limit(name = "installed", rule(count = 1, per = "60s"))]
async fn by_the_installed_limiter() -> Result<&'static str, Rejection> {
    Ok("ran")
}

#[tokio::test]
async fn servers_of_tests_have_limiters_of_their_own_in_place_of_the_installed_one() {
    for _ in 0..2 {
        let layer = Layer::new().context(Context::test().limiter(&Limiter::in_memory()));
        let router = Router::new().route("/", get(by_the_installed_limiter)).layer(layer);
        let client = Client::new(serve(router).await);
        assert_eq!([client.get("/").await.status, client.get("/").await.status], [200, 429]);
    }
}
