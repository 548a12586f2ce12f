//! What clients of gRPC and of gRPC-Web are answered by a limit outside of the layers that translate between them.

use std::time::Duration;

use axum::Router;
use axum::routing::post;
use reqwest::Method;
use tallygate::{Limiter, Policy, Rule, web};
use tallygate_web_tests::Client;
use tallygate_web_tests::server::serve;
use tonic::metadata::MetadataMap;

/// The media type and the body of a denial, the status of gRPC in its fields, and the status.
struct Denied {
    status: u16,
    media_type: String,
    grpc_status: Option<String>,
    body: Vec<u8>,
}

async fn denied(fields: &[(&str, &str)]) -> Denied {
    let policy = Policy::builder("api").rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap();
    let limit = web::limit(&policy, "{@ip}").unwrap().limiter(&Limiter::in_memory());
    let router = Router::new().route("/captcha.Captcha/Send", post(|| async { "sent" })).layer(limit);
    let client = Client::new(serve(router).await);
    let send = async || client.request(Method::POST, "/captcha.Captcha/Send", fields).send().await.unwrap();
    assert_eq!(send().await.status(), 200);
    let response = send().await;
    let field = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let (media_type, grpc_status) = (field("content-type").unwrap(), field("grpc-status"));
    assert!(field("ratelimit").is_some(), "{media_type}");
    Denied { status: response.status().as_u16(), media_type, grpc_status, body: response.bytes().await.unwrap().into() }
}

/// The lines of the only frame of a body, which is one of trailers.
fn trailers(body: &[u8]) -> Vec<String> {
    let [0x80, a, b, c, d, lines @ ..] = body else { panic!("{body:?}") };
    assert_eq!(u32::from_be_bytes([*a, *b, *c, *d]) as usize, lines.len());
    let lines = str::from_utf8(lines).unwrap().strip_suffix("\r\n").unwrap();
    lines.split("\r\n").map(str::to_owned).collect()
}

fn assert_exhausted(body: &[u8]) {
    let lines = trailers(body);
    assert!(lines.contains(&"grpc-status:8".to_owned()), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("grpc-message:too%20many%20requests")), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("grpc-status-details-bin:")), "{lines:?}");
}

#[tokio::test]
async fn a_client_of_grpc_is_answered_with_a_status_however_the_media_type_is_written() {
    for sent in [
        "application/grpc",
        "Application/GRPC",
        "application/grpc+proto",
        "application/grpc; a=b",
        "application/grpc ;a",
    ] {
        let Denied { status, media_type, grpc_status, body } = denied(&[("content-type", sent)]).await;
        assert_eq!(
            (status, media_type.as_str(), grpc_status.as_deref()),
            (200, "application/grpc", Some("8")),
            "{sent}"
        );
        assert!(body.is_empty(), "{sent}");
    }
}

#[tokio::test]
async fn a_client_of_grpc_web_finds_the_status_in_the_body() {
    for (sent, answered) in [
        ("application/grpc-web", "application/grpc-web"),
        ("application/grpc-web+proto", "application/grpc-web+proto"),
        ("Application/gRPC-Web+Proto; charset=utf-8", "application/grpc-web+proto"),
    ] {
        let Denied { status, media_type, body, .. } = denied(&[("content-type", sent)]).await;
        assert_eq!((status, media_type.as_str()), (200, answered), "{sent}");
        assert_exhausted(&body);
    }
}

#[tokio::test]
async fn a_client_of_grpc_web_that_reads_text_is_sent_text() {
    let (web, text) = ("application/grpc-web+proto", "application/grpc-web-text+proto");
    for fields in [
        &[("content-type", text)][..],
        &[("content-type", text), ("accept", "*/*")],
        &[("content-type", web), ("accept", "text/plain, application/grpc-web-text+proto;q=0.9")],
    ] {
        let Denied { status, media_type, body, .. } = denied(fields).await;
        assert_eq!((status, media_type.as_str(), body.len() % 4), (200, text, 0), "{fields:?}");
        // Binary metadata is text in Base64.
        let text = http::HeaderMap::from_iter([("text-bin".parse().unwrap(), body.try_into().unwrap())]);
        let decoded = MetadataMap::from_headers(text).get_bin("text-bin").unwrap().to_bytes().unwrap();
        assert_exhausted(&decoded);
    }
}

#[tokio::test]
async fn media_types_that_only_begin_like_those_of_grpc_are_others() {
    for sent in ["application/grpcfoo", "application/grpc-website", "text/grpc", "application/json"] {
        let Denied { status, media_type, grpc_status, .. } = denied(&[("content-type", sent)]).await;
        assert_eq!((status, media_type.as_str(), grpc_status), (429, "application/problem+json", None), "{sent}");
    }
}
