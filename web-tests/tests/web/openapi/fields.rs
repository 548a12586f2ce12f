//! The fields of limits in a document, as a layer writes them.

use axum::Router;
use axum::routing::post;
use reqwest::Method;
use tallygate::config::Policies;
use tallygate::{Limiter, Rejection, rate_limit, web};
use tallygate_web_tests::Client;
use tallygate_web_tests::server::serve;
use utoipa::OpenApi;

/// Answers a chat, in tokens.
#[utoipa::path(post, path = "/chats", responses((status = 200, description = "answered"), ChatLimits))]
#[rate_limit(
    unit("output_tokens", cost = 500),
    rule(count = 60, per = "60s"),
    rule(count = 20_000, per = "60s", unit = "output_tokens"),
    concurrency(limit = 3, lease = "30s"),
    openapi = ChatLimits
)]
pub(crate) async fn chat() -> Result<(), Rejection> {
    Ok(())
}

/// Renders, a few at a time.
#[utoipa::path(post, path = "/renders", responses((status = 200, description = "rendered"), RenderLimits))]
#[rate_limit(concurrency(limit = 3, lease = "30s"), openapi = RenderLimits)]
pub(crate) async fn render() -> Result<(), Rejection> {
    Ok(())
}

/// Counts tokens in a file alone.
#[utoipa::path(post, path = "/counted", responses((status = 200, description = "counted")))]
pub(crate) fn counted() -> String {
    "counted".into()
}

#[derive(OpenApi)]
#[openapi(paths(chat, render, counted, super::draw))]
struct Gateway;

const FILE: &str = r#"
[policy."openapi.counted"]
match = { path = "/counted" }
key = "all"
rules = ["9000 tokens per 1m"]
cost = { tokens = 10 }

[policy."openapi.chats"]
match = { path = "/chats" }
key = "all"
rules = ["90 bytes per 1m"]
cost = { bytes = 1 }
"#;

/// Returns the names of the fields that responses of a gateway have, beside `Retry-After`.
fn fields(layer: &web::Layer) -> impl Fn(&str, &str) -> Vec<String> + use<> {
    let limiter = Limiter::in_memory();
    limiter.apply(&Policies::from_toml(FILE).unwrap()).unwrap();
    let mut document = Gateway::openapi();
    web::limits(&limiter).unwrap().describe(&mut document);
    layer.describe(&mut document);
    let document = serde_json::to_value(document).unwrap();
    assert!(!document.to_string().contains("x-ratelimit-units"), "{document}");
    move |path, status| {
        let headers = &document["paths"][path]["post"]["responses"][status]["headers"];
        let names = headers.as_object().into_iter().flat_map(|headers| headers.keys());
        names.filter(|name| *name != "Retry-After").cloned().collect()
    }
}

fn of_units(units: &[&str]) -> Vec<String> {
    let mut fields: Vec<_> = ["limit", "remaining", "reset"]
        .iter()
        .flat_map(|what| units.iter().map(move |unit| format!("x-ratelimit-{what}-{unit}")))
        .collect();
    fields.sort();
    fields
}

#[tokio::test]
async fn the_fields_are_those_that_the_layer_writes_for_the_units_of_an_operation() {
    let by_unit = web::Layer::new().fields(None).legacy(web::Legacy::XRateLimitByUnit);
    let named = fields(&by_unit);
    assert_eq!(named("/chats", "429"), of_units(&["bytes", "output-tokens", "requests"]));
    assert_eq!(named("/counted", "429"), of_units(&["tokens"]));
    assert_eq!(named("/lottery", "409"), of_units(&["requests"]));
    assert!(named("/chats", "503").is_empty() && named("/chats", "200").is_empty());

    let on_success = fields(&by_unit.on_success(true));
    assert_eq!(on_success("/chats", "200"), on_success("/chats", "429"));
    let usual = fields(&web::Layer::new());
    assert_eq!(usual("/chats", "429"), ["RateLimit", "RateLimit-Policy"]);
    let both = fields(&web::Layer::new().legacy(web::Legacy::XRateLimit));
    let legacy = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];
    assert_eq!(both("/counted", "429"), [&["RateLimit", "RateLimit-Policy"][..], &legacy].concat());
    assert!(fields(&web::Layer::new().fields(None))("/chats", "429").is_empty());
    let successful = fields(&web::Layer::new().on_success(true));
    assert_eq!(successful("/renders", "200"), ["RateLimit", "RateLimit-Policy"]);
    assert!(chat().await.is_ok() && render().await.is_ok() && counted() == "counted");
}

#[tokio::test]
async fn described_fields_are_those_of_a_real_response() {
    let layer = web::Layer::new().fields(None).legacy(web::Legacy::XRateLimitByUnit).on_success(true);
    let described = fields(&layer)("/counted", "429");
    let limiter = Limiter::in_memory();
    limiter.apply(&Policies::from_toml(FILE.replace("9000", "10")).unwrap()).unwrap();
    let router = Router::new().route("/counted", post(|| async { "counted" }));
    let router = router.layer(web::limits(&limiter).unwrap()).layer(layer);
    let client = Client::new(serve(router).await);
    for status in [200, 429] {
        let answer = client.send(Method::POST, "/counted", &[]).await;
        assert_eq!(answer.status, status);
        let mut written: Vec<_> = answer.headers.keys().map(ToString::to_string).collect();
        written.retain(|name| name.starts_with("x-ratelimit"));
        written.sort();
        assert_eq!(written, described);
    }
}
