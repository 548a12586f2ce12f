//! The whole service.

mod answers;
mod file;
mod fleet;
mod handlers;
mod support;

use std::sync::LazyLock;

use escargot::CargoRun;
use reqwest::header::RETRY_AFTER;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::built;
use crate::process::Service;

static SERVICE: LazyLock<CargoRun> = LazyLock::new(|| built::service("service-example"));

fn start(variables: &[(&str, &str)]) -> Service {
    Service::start(&SERVICE, variables)
}

async fn code(service: &Service, email: &str) -> Response {
    service.request(Method::POST, "/codes").json(&json!({ "email": email })).send().await.unwrap()
}

async fn report(service: &Service) -> u16 {
    service.get("/report").send().await.unwrap().status().as_u16()
}

async fn ask(service: &Service, user: &str, longest: u32) -> Response {
    let question = json!({ "text": "tell me a story", "longest": longest });
    service.request(Method::POST, "/answers").header("x-user", user).json(&question).send().await.unwrap()
}

/// Takes a problem apart, whose wait is to agree with `Retry-After`: the wait in milliseconds, and the body.
async fn problem(response: Response) -> (u64, Value) {
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let seconds: u64 = response.headers()[RETRY_AFTER].to_str().unwrap().parse().unwrap();
    let body: Value = response.json().await.unwrap();
    let wait = body["retry_after_ms"].as_u64().unwrap();
    assert_eq!(wait.div_ceil(1_000), seconds);
    (wait, body)
}
