//! The gateway to a language model.

mod fleet;
mod rejections;
mod streams;

use std::sync::LazyLock;

use escargot::CargoRun;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tallygate_harness::until::until_found;

use crate::built;
use crate::process::Service;

static GATEWAY: LazyLock<CargoRun> = LazyLock::new(|| built::service("gateway-example"));

/// A prompt whose answer lasts longer than a test, in words.
const LONG: usize = 5_000;

fn start(url: &str) -> Service {
    Service::start(&GATEWAY, &[("TALLYGATE_URL", url)])
}

/// Asks with so many words, which are the tokens of the prompt and of the answer, and reserves so many for the answer.
async fn ask(gateway: &Service, user: &str, words: usize, max_tokens: u64) -> Response {
    let messages = [json!({ "role": "user", "content": "hello ".repeat(words) })];
    let chat = json!({ "model": "any", "stream": true, "messages": messages, "max_tokens": max_tokens });
    let request = gateway.request(Method::POST, "/v1/chat/completions").bearer_auth(format!("sk-{user}"));
    request.json(&chat).send().await.unwrap()
}

/// Asks until it is admitted: in Redis, the call before is settled a moment after its client has heard the end.
async fn ask_next(gateway: &Service, user: &str, words: usize, max_tokens: u64) -> Response {
    let mut next = None;
    until_found("there is room", async || {
        let answer = ask(gateway, user, words, max_tokens).await;
        let is_denied = answer.status() == 429;
        next = Some(answer);
        !is_denied
    })
    .await;
    admitted(next.expect("it was asked"))
}

fn admitted(answer: Response) -> Response {
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    answer
}

/// Reads an answer to its end, and returns how many tokens it has.
async fn read(answer: Response) -> usize {
    let text = admitted(answer).text().await.unwrap();
    let mut events: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(events.pop(), Some("[DONE]"));
    for event in &events {
        let chunk: Value = serde_json::from_str(event).unwrap();
        assert_eq!(
            (&chunk["object"], &chunk["choices"][0]["delta"]["content"]),
            (&json!("chat.completion.chunk"), &json!("hello "))
        );
    }
    events.len()
}

/// Returns a field of OpenAI's interface, like `remaining-tokens`.
fn field(answer: &Response, name: &str) -> u64 {
    let name = format!("x-ratelimit-{name}");
    let value = answer.headers().get(&name).unwrap_or_else(|| panic!("{name}: {answer:?}"));
    value.to_str().unwrap().parse().unwrap()
}

/// Returns the error of a response with this status.
async fn error(answer: Response, status: u16) -> Value {
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["content-type"]),
        (status, &"application/json".parse().unwrap())
    );
    let mut body: Value = answer.json().await.unwrap();
    body["error"].take()
}
