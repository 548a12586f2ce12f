//! Chats with the model, streamed as server-sent events.

use std::convert::Infallible;

use axum::Json;
use axum::response::IntoResponse;
use axum::response::sse::{Event, Sse};
use futures_util::{StreamExt as _, stream};
use serde::Deserialize;
use serde_json::json;
use tallygate::{Rejection, rate_limit};

use crate::model;
use crate::users::User;

#[derive(Deserialize)]
pub(crate) struct Chat {
    messages: Vec<Message>,
    /// The longest answer.
    #[serde(alias = "max_completion_tokens", default = "longest_by_default")]
    max_tokens: u32,
}

#[derive(Deserialize)]
struct Message {
    content: String,
}

/// Who does not say how long an answer may be reserves this.
fn longest_by_default() -> u32 {
    1_000
}

impl Chat {
    fn prompt(&self) -> String {
        self.messages.iter().map(|message| &*message.content).collect::<Vec<_>>().join("\n")
    }

    fn prompt_tokens(&self) -> u64 {
        model::count_tokens(&self.prompt())
    }

    /// Returns what the chat uses with the longest answer.
    fn most_tokens(&self) -> u64 {
        self.prompt_tokens() + u64::from(self.max_tokens)
    }
}

/// Answers as long as the client listens. The longest answer is reserved, and what was used counts in the end.
#[rate_limit(
    name = "chat",
    key = "{user.name}",
    unit("tokens", cost = chat.most_tokens(), settle = metered),
    rule(count = user.plan.requests, per = "60s"),
    rule(count = user.plan.tokens, per = "60s", unit = "tokens"),
    rule(
        name = "org.requests",
        key = "org:{user.org}",
        count = 30,
        per = "60s",
        message = "{user.org} has {@count} requests in {@per}; next try: {@retry_after}"
    ),
    rule(
        name = "org.tokens",
        key = "org:{user.org}",
        count = 100_000,
        per = "60s",
        unit = "tokens",
        message = "{user.org} has {@count} tokens in {@per}; next try: {@retry_after}"
    ),
    concurrency(limit = 3, lease = "30s", message = "wait until one of your answers has ended"),
    message = "your plan has {@count} {@unit} in {@per}; next try: {@retry_after}",
    until = "body",
    on_outage = "local"
)]
pub(crate) async fn complete(user: User, Json(chat): Json<Chat>) -> Result<impl IntoResponse, Rejection> {
    // Glue begins.
    let tokens = tallygate::meter("tokens")?;
    tokens.add(chat.prompt_tokens());
    // Glue ends.
    let answer = model::answer(&chat.prompt(), chat.max_tokens);
    // Glue begins.
    let answer = answer.inspect(move |_| tokens.add(1));
    // Glue ends.
    let done = stream::iter([Event::default().data("[DONE]")]);
    Ok(Sse::new(answer.map(|token| chunk(&token)).chain(done).map(Ok::<_, Infallible>)))
}

/// Returns a piece of an answer, as OpenAI's clients read it.
fn chunk(token: &str) -> Event {
    let choice = json!({ "index": 0, "delta": { "content": token }, "finish_reason": null });
    Event::default().data(json!({ "object": "chat.completion.chunk", "choices": [choice] }).to_string())
}
