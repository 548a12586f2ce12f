//! The limit as a middleware, which leaves the same requests alone as the layer of `tower`.

use actix_cors::Cors;
use actix_web::dev::ServiceRequest;
use actix_web::middleware::{Next, from_fn};
use actix_web::{App, HttpMessage as _, HttpServer};
use reqwest::Method;
use tallygate::context::{self, Context};
use tallygate::web::{self, ClientIp, Layer, Limit};
use tallygate::{Limiter, Subject};
use tallygate_web_tests::{Client, Http, LimitItem};

use super::{limit, policy, routes, run, serve};

const OTHER: &str = "203.0.113.10";
const ORIGIN: &str = "https://shop.example";

/// The fields of a preflight.
const AHEAD: [(&str, &str); 2] = [("origin", ORIGIN), ("access-control-request-method", "GET")];

/// Returns whether the second request of a client is admitted, behind a proxy.
async fn admits_second(limit: Limit, client_ip: &str, method: Method, fields: &[(&str, &str)]) -> bool {
    let layer = Layer::new().client_ip(ClientIp::behind(["127.0.0.1"]).unwrap());
    let client = Client::new(serve(Some(layer), Some(limit)).await);
    let fields = [&[("x-forwarded-for", client_ip)], fields].concat();
    let send = async || client.send(method.clone(), "/items/1", &fields).await.status;
    assert_ne!(send().await, 429, "the first one");
    send().await != 429
}

#[tokio::test]
async fn requests_are_limited_or_left_alone_as_in_axum() {
    let one = || limit(1, "{@ip}");
    let of = |methods: &[&str]| one().methods(methods.iter().copied()).unwrap();
    let exempt = |network: &str| one().exempt_addresses([network]).unwrap();
    let if_other = || one().exempt_if(|parts| parts.header("x-forwarded-for") == Some(OTHER));
    for (case, limit, client_ip, method, expected) in [
        ("a plain limit", one(), OTHER, Method::GET, false),
        ("a method that is no standard one", one(), OTHER, Method::from_bytes(b"FOO").unwrap(), false),
        ("a method of the list", of(&["POST", "OPTIONS"]), OTHER, Method::OPTIONS, false),
        ("a method of the list in small letters", of(&["POST"]), OTHER, Method::from_bytes(b"post").unwrap(), false),
        ("no method of the list", of(&["POST", "OPTIONS"]), OTHER, Method::GET, true),
        ("`GET` includes `HEAD`", of(&["GET"]), OTHER, Method::HEAD, false),
        ("`HEAD` does not include `GET`", of(&["HEAD"]), OTHER, Method::GET, true),
        ("an exempt client", exempt(OTHER), OTHER, Method::GET, true),
        ("another client", exempt(OTHER), "203.0.113.9", Method::GET, false),
        ("the address of the proxy", exempt("127.0.0.0/8"), OTHER, Method::GET, false),
        ("the address of the proxy in place of its client", exempt("127.0.0.0/8"), "unknown", Method::GET, false),
        ("an exempt request", if_other(), OTHER, Method::GET, true),
        ("another request", if_other(), "203.0.113.9", Method::GET, false),
        ("a limit in shadow", one().shadow(), OTHER, Method::GET, true),
    ] {
        assert_eq!(admits_second(limit, client_ip, method, &[]).await, expected, "{case}");
    }
    for (case, limit, fields, expected) in [
        ("browsers ask ahead", one(), &AHEAD[..], true),
        ("no origin", one(), &AHEAD[1..], false),
        ("no method that is asked for", one(), &AHEAD[..1], false),
        ("`OPTIONS` alone", one(), &[], false),
        ("`with_options_requests`", one().with_options_requests(), &AHEAD, false),
        ("`OPTIONS` is listed", of(&["POST", "OPTIONS"]), &AHEAD, false),
    ] {
        assert_eq!(admits_second(limit, OTHER, Method::OPTIONS, fields).await, expected, "{case}");
    }
    assert!(!admits_second(one(), OTHER, Method::POST, &AHEAD).await, "only `OPTIONS` asks ahead");
}

#[tokio::test]
async fn a_host_has_one_tally_by_both_versions_of_http_and_a_field_that_is_missing_one_of_its_own() {
    for (first, other) in [(Http::One, Http::Two), (Http::Two, Http::One)] {
        let server = serve(None, Some(limit(1, "{@header_host}"))).await;
        let by = async |http| Client::by(http, server).get("/items/1").await.status;
        assert_eq!([by(first).await, by(other).await], [200, 429]);

        let client = Client::by(first, serve(None, Some(limit(1, "{@header_x_api_key}"))).await);
        for (fields, status) in [
            (&[][..], 200),
            (&[("x-api-key", "")], 200),
            (&[("x-api-key", "é")], 200),
            (&[], 429),
            (&[("x-api-key", "è")], 200),
        ] {
            assert_eq!(client.get_with("/items/1", fields).await.status, status, "{fields:?}");
        }
    }
}

#[tokio::test]
async fn the_clones_of_a_limit_count_a_request_once() {
    let limit = limit(1, "{@ip}");
    let server = run(move || {
        let server = HttpServer::new(move || App::new().configure(routes).wrap(limit.clone()).wrap(limit.clone()));
        let server = server.workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
        (server.addrs()[0], server.run())
    });
    let client = Client::new(server.await);
    assert_eq!([client.get("/items/1").await.status, client.get("/items/1").await.status], [200, 429]);
}

#[tokio::test]
async fn a_limit_in_shadow_counts_and_writes_no_fields() {
    let (limiter, policy) = (Limiter::in_memory(), policy(1));
    let limit = web::limit(&policy, "{@ip}").unwrap().limiter(&limiter).shadow();
    let client = Client::new(serve(None, Some(limit)).await);
    for _ in 0..3 {
        let answer = client.get("/items/1").await;
        assert_eq!((answer.status, answer.header("ratelimit")), (200, None));
    }
    let decision = limiter.peek(&policy, &Subject::of("127.0.0.1")).await.unwrap();
    assert_eq!(decision.report()[0].remaining(), 0);
}

/// Serves a limit and a layer within CORS, for the scripts of one origin.
async fn serve_within_cors(limit: Limit) -> Client {
    let server = run(move || {
        let server = HttpServer::new(move || {
            let cors = Cors::default().allowed_origin(ORIGIN).allowed_methods(["GET"]);
            let cors = cors.expose_headers(["retry-after", "ratelimit"]);
            App::new().wrap(limit.clone()).wrap(Layer::new().on_success(true)).wrap(cors).configure(routes)
        });
        let server = server.workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
        (server.addrs()[0], server.run())
    });
    Client::new(server.await)
}

#[tokio::test]
async fn browsers_can_ask_ahead_and_read_denials_if_cors_is_outside() {
    let client = serve_within_cors(limit(1, "{@ip}")).await;
    let asks_ahead = async || client.send(Method::OPTIONS, "/items/1", &AHEAD).await.status;
    assert_eq!([asks_ahead().await, asks_ahead().await], [200, 200]);
    for status in [200, 429] {
        let answer = client.get_with("/items/1", &AHEAD[..1]).await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (status, Some(ORIGIN)));
        let exposed = answer.header("access-control-expose-headers").unwrap();
        assert!(exposed.contains("retry-after") && exposed.contains("ratelimit"), "{exposed}");
        assert_eq!(answer.limits()[0].r, 0);
    }
    assert_eq!(asks_ahead().await, 200, "a request of CORS is not limited");
}

/// Serves a limit without a layer, within a context of the application's own.
async fn serve_within(own: Context, limit: Limit) -> Client {
    let server = run(move || {
        let server = HttpServer::new(move || {
            let own = own.clone();
            let within = from_fn(move |request: ServiceRequest, next: Next<_>| {
                let own = own.clone();
                async move { context::scope(own, next.call(request)).await }
            });
            App::new().configure(routes).wrap(limit.clone()).wrap(within)
        });
        let server = server.workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
        (server.addrs()[0], server.run())
    });
    Client::new(server.await)
}

#[tokio::test]
async fn a_limit_without_a_layer_finds_the_client_within_any_context_and_takes_the_one_that_it_knows() {
    let (limiter, policy) = (Limiter::in_memory(), policy(1));
    let limit = web::limit(&policy, "{@ip}").unwrap().limiter(&limiter);
    let own = Context::new().with("tenant", "a");
    for (own, ip) in [(own.clone(), "127.0.0.1"), (own.with("ip", "203.0.113.9"), "203.0.113.9")] {
        let client = serve_within(own, limit.clone()).await;
        assert_eq!(client.get("/items/1").await.status, 200);
        let decision = limiter.peek(&policy, &Subject::of(ip)).await.unwrap();
        assert_eq!(decision.report()[0].remaining(), 0, "{ip}");
        let answer = client.get("/items/1").await;
        assert_eq!(answer.status, 429, "{ip}");
        assert_eq!(answer.limits(), [LimitItem { name: "api.1m".into(), r: 0, t: answer.retry_after() }]);
    }
}

/// Stored in each request by a middleware.
struct User(String);

#[tokio::test]
async fn a_key_shows_what_a_middleware_around_has_stored_in_the_request() {
    let limit = limit(1, "{@user}");
    let server = run(move || {
        let server = HttpServer::new(move || {
            let signed_in = from_fn(|request: ServiceRequest, next: Next<_>| {
                let name = request.headers().get("x-user").map(|name| name.to_str().unwrap().to_owned());
                if let Some(name) = name {
                    request.extensions_mut().insert(User(name));
                }
                next.call(request)
            });
            let layer = Layer::new().value("user", |parts| parts.extension(|User(name)| name.clone()));
            App::new().configure(routes).wrap(limit.clone()).wrap(layer).wrap(signed_in)
        });
        let server = server.workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
        (server.addrs()[0], server.run())
    });
    let client = Client::new(server.await);
    for (user, status) in [("alice", 200), ("bob", 200), ("alice", 429)] {
        assert_eq!(client.get_with("/items/1", &[("x-user", user)]).await.status, status, "{user}");
    }
    assert_eq!(client.get("/items/1").await.status, 401, "nobody is signed in");
}
