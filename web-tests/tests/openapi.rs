//! The responses of limited handlers in a document of OpenAPI.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tallygate::{Policy, Rejection, Rule, rate_limit, web};
use utoipa::openapi::{RefOr, Response};
use utoipa::{IntoResponses, OpenApi};

/// Sends a code.
#[utoipa::path(post, path = "/codes", responses((status = 200, description = "sent"), SendCodeLimits))]
#[rate_limit(
    key = "{@ip}",
    rule(count = 5, per = "60s"),
    rule(count = 1000, per = "60s", key = "all"),
    prevent_duplicate,
    ban(denials = 20, within = "10m", duration = "1h"),
    openapi = SendCodeLimits
)]
pub(crate) async fn send_code() -> Result<(), Rejection> {
    Ok(())
}

/// Draws a number.
#[utoipa::path(post, path = "/lottery", responses((status = 200, description = "drawn"), Rejection))]
#[rate_limit(rule(count = 5, per = "60s"))]
pub(crate) async fn draw() -> Result<String, Rejection> {
    Ok("7".into())
}

struct ApiLimits;

impl IntoResponses for ApiLimits {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let policy = Policy::builder("api").rule(Rule::sliding_window(100, Duration::from_secs(60))).build();
        web::limit_responses(&policy.unwrap())
    }
}

/// Lists items, by a router that is limited as a whole.
#[utoipa::path(get, path = "/items", responses((status = 200, description = "items"), ApiLimits))]
pub(crate) fn items() -> String {
    "items".into()
}

#[derive(OpenApi)]
#[openapi(paths(send_code, draw, items))]
struct Api;

fn responses(method: &str, path: &str) -> Value {
    let document: Value = serde_json::to_value(Api::openapi()).unwrap();
    document["paths"][path][method]["responses"].clone()
}

fn statuses(responses: &Value) -> Vec<&str> {
    responses.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test]
async fn a_limited_handler_lists_its_rejections_with_its_limits() {
    let responses = responses("post", "/codes");
    assert_eq!(statuses(&responses), ["200", "409", "429", "503"]);
    let limited = &responses["429"];
    let description = limited["description"].as_str().unwrap();
    for limit in ["`5 per 1m`", "`1000 per 1m`", "For each `{@ip}`", "no duplicate within `5s`", "banned for `1h`"] {
        assert!(description.contains(limit), "{description}");
    }
    assert_eq!(limited["headers"]["Retry-After"]["schema"]["type"], "integer");
    let problem = &limited["content"]["application/problem+json"]["schema"];
    assert_eq!(problem["properties"]["retry_after_ms"]["type"], "integer");
    assert!(problem["required"].as_array().unwrap().contains(&json!("violated-policies")));
    let _ = (send_code().await, draw().await, items());
}

#[test]
fn a_policy_that_is_built_by_hand_lists_its_rules() {
    let responses = responses("get", "/items");
    assert_eq!(statuses(&responses), ["200", "429", "503"]);
    assert!(responses["429"]["description"].as_str().unwrap().contains("* `100 per 1m`"));
}

#[test]
fn a_rejection_lists_all_that_it_becomes() {
    assert_eq!(statuses(&responses("post", "/lottery")), ["200", "409", "429", "503"]);
}
