//! Limits by fields of requests and by hosts, over both versions of HTTP.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use http::{HeaderName, HeaderValue};
use reqwest::Method;
use tallygate::web::{self, ClientIp, Layer, Limit};
use tallygate::{Limiter, Policy, Rule};
use tallygate_web_tests::server::serve;
use tallygate_web_tests::{Client, Http};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

fn limit(key: &str) -> Limit {
    let policy = Policy::builder("api").rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap();
    web::limit(&policy, key).unwrap().limiter(&Limiter::in_memory())
}

async fn serve_limited(limit: Limit, layer: Layer) -> SocketAddr {
    serve(Router::new().route("/", get(|| async { "done" })).layer(limit).layer(layer)).await
}

/// Sends a request with these lines of a field.
async fn send(client: &Client, name: &str, lines: &[&[u8]]) -> u16 {
    let request = client.request(Method::GET, "/", &[]);
    let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
    let line = |line: &&[u8]| HeaderValue::from_bytes(line).unwrap();
    let request = lines.iter().fold(request, |request, bytes| request.header(name.clone(), line(bytes)));
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn different_values_of_a_field_never_share_a_tally() {
    for http in [Http::One, Http::Two] {
        let client = Client::by(http, serve_limited(limit("{@header_x_api_key}"), Layer::new()).await);
        let long = [b'x'; 300];
        let longer = [b'x'; 301];
        let values: [&[&[u8]]; 12] = [
            &[],
            &[b""],
            &[b"key"],
            &["ké".as_bytes()],
            &["kè".as_bytes()],
            &[b"k\xe9"],
            &[b"k\xe8"],
            &[b"k%E9"],
            &[b"a", b"b"],
            &[b"a"],
            &[&long],
            &[&longer],
        ];
        for status in [200, 429] {
            for lines in values {
                assert_eq!(send(&client, "x-api-key", lines).await, status, "{lines:?}");
            }
        }
        assert_eq!(send(&client, "x-api-key", &[b"a, b"]).await, 429, "one line is what two lines mean");
    }
}

#[tokio::test]
async fn a_field_that_a_request_lacks_gives_way_to_an_alternative_and_no_client_is_rejected_for_it() {
    let client = Client::new(serve_limited(limit("{@header_x_api_key|@ip}"), Layer::new()).await);
    assert_eq!(send(&client, "x-api-key", &[]).await, 200);
    assert_eq!(send(&client, "x-api-key", &[b"127.0.0.1"]).await, 200);
    assert_eq!(send(&client, "x-api-key", &[]).await, 429);
    let client = Client::new(serve_limited(limit("{@user|@header_x_api_key}"), Layer::new()).await);
    assert_eq!([send(&client, "x-api-key", &[]).await, send(&client, "x-api-key", &[]).await], [200, 429]);
    assert_eq!(send(&client, "x-api-key", &[b"\xff"]).await, 200);
}

/// Sends a request with that head by HTTP/1.1, and returns the status.
async fn send_head(server: SocketAddr, head: &str) -> u16 {
    let mut stream = TcpStream::connect(server).await.unwrap();
    stream.write_all(format!("{head}connection: close\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_host_has_one_tally_by_both_versions_of_http() {
    for first in [Http::One, Http::Two] {
        let server = serve_limited(limit("{@header_host}"), Layer::new()).await;
        let by = async |http| Client::by(http, server).get("/").await.status;
        assert_eq!(by(first).await, 200);
        assert_eq!([by(Http::One).await, by(Http::Two).await], [429, 429]);
        for head in [
            format!("GET / HTTP/1.1\r\nhost: {server}\r\n"),
            "GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n".to_owned(),
            // The URL of a request goes before the field.
            format!("GET http://{server}/ HTTP/1.1\r\nhost: other.example\r\n"),
        ] {
            assert_eq!(send_head(server, &head).await, 429, "{head}");
        }
        for host in ["shop.example", "other.example"] {
            assert_eq!(send_head(server, &format!("GET / HTTP/1.1\r\nhost: {host}\r\n")).await, 200, "{host}");
            let spelled = format!("GET / HTTP/1.1\r\nhost: {}.:80\r\n", host.to_uppercase());
            assert_eq!(send_head(server, &spelled).await, 429, "{host}");
        }
    }
}

#[tokio::test]
async fn values_that_an_application_finds_know_the_host_and_all_cookies() {
    for http in [Http::One, Http::Two] {
        let layer = Layer::new()
            .value("host", |parts| parts.header_text("host"))
            .value("written", |parts| parts.header("host").map(str::to_owned))
            .value("cookies", |parts| parts.header_text("cookie"));
        let server = serve_limited(limit("{@host} {@written} {@cookies}"), layer).await;
        let client = Client::by(http, server);
        for (lines, status) in
            [(&[&b"a=1"[..], b"b=2"][..], 200), (&[b"a=1; b=2"], 429), (&[b"a=1", b"b=3"], 200), (&[b"a=1"], 200)]
        {
            assert_eq!(send(&client, "cookie", lines).await, status, "{http:?} {lines:?}");
        }
    }
}

/// Whether the limit is off for requests with these fields.
async fn is_exempt(limit: Limit, layer: Layer, fields: &[(&str, &str)]) -> bool {
    let client = Client::new(serve_limited(limit, layer).await);
    let first = client.get_with("/", fields).await.status;
    (first, client.get_with("/", fields).await.status) == (200, 200)
}

#[tokio::test]
async fn the_address_of_a_proxy_in_place_of_its_client_exempts_nobody() {
    let exempt = || limit("{@ip}").exempt_addresses(["127.0.0.0/8"]).unwrap();
    let behind = || ClientIp::behind(["127.0.0.0/8"]).unwrap();
    for (source, fields) in [
        (behind(), ("x-forwarded-for", "unknown")),
        (behind(), ("x-forwarded-for", "203.0.113.9, _hidden")),
        (behind(), ("x-forwarded-for", "")),
        (behind(), ("x-forwarded-for", "203.0.113.9, unknown, 127.0.0.7")),
        (behind(), ("forwarded", "for=203.0.113.9")),
        (behind().forwarded(), ("forwarded", "for=unknown")),
        (behind().header("x-real-ip").unwrap(), ("x-real-ip", "unknown")),
        (ClientIp::hops(1).unwrap(), ("x-forwarded-for", "unknown")),
        (ClientIp::hops(2).unwrap(), ("x-forwarded-for", "127.0.0.7")),
        (ClientIp::socket(), ("x-forwarded-for", "203.0.113.9")),
    ] {
        let shown = format!("{source:?} {fields:?}");
        assert!(!is_exempt(exempt(), Layer::new().client_ip(source), &[fields]).await, "{shown}");
    }
    assert!(is_exempt(exempt(), Layer::new(), &[]).await, "a client without a proxy");
    let far = ClientIp::behind(["127.0.0.1"]).unwrap();
    assert!(is_exempt(exempt(), Layer::new().client_ip(far), &[("x-forwarded-for", "127.0.0.7")]).await);
}

#[tokio::test]
async fn a_layer_on_the_wrong_side_of_a_limit_exempts_nobody() {
    let layer = Layer::new().client_ip(ClientIp::behind(["127.0.0.0/8"]).unwrap());
    let limit = limit("{@ip}").exempt_addresses(["127.0.0.0/8"]).unwrap();
    let router = Router::new().route("/", get(|| async { "done" })).layer(layer).layer(limit);
    let client = Client::new(serve(router).await);
    let statuses = [("203.0.113.9", 200), ("203.0.113.9", 429), ("unknown", 429)];
    for (forwarded, status) in statuses {
        assert_eq!(client.get_with("/", &[("x-forwarded-for", forwarded)]).await.status, status);
    }
}

#[tokio::test]
async fn what_an_application_exempts_can_know_a_fallback() {
    let own = |parts: &web::Parts<'_>| {
        parts.client_ip().is_some_and(|client| client.address().is_loopback() && !client.is_fallback())
    };
    let layer = || Layer::new().client_ip(ClientIp::behind(["127.0.0.1"]).unwrap());
    assert!(is_exempt(limit("{@ip}").exempt_if(own), layer(), &[("x-forwarded-for", "127.0.0.2")]).await);
    assert!(!is_exempt(limit("{@ip}").exempt_if(own), layer(), &[("x-forwarded-for", "unknown")]).await);
}
