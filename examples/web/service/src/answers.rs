//! Answers of a language model, streamed as server-sent events. Each user has one answer at a time, so many in an hour as the plan
//! has, and a budget of tokens.

use std::convert::Infallible;
use std::iter;
use std::time::Duration;

use axum::Json;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Deserialize;
use tallygate::{Limiter, Rejection, rate_limit};
use tokio::time::sleep;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::account::User;

pub(crate) fn router() -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(answer))
}

#[derive(Deserialize, ToSchema)]
struct Question {
    text: String,
    /// The longest answer, in tokens.
    longest: u32,
}

impl Question {
    fn tokens(&self) -> u64 {
        self.text.split_whitespace().map(|_| 1).sum()
    }
}

/// Answers as long as the client listens. What it has heard until then is what its user pays.
#[utoipa::path(post, path = "/answers", responses((status = 200, description = "words, as server-sent events"), AnswerLimits))]
#[rate_limit(
    name = "answers",
    key = "{user.name}",
    unit("tokens", cost = question.tokens() + u64::from(question.longest), settle = metered),
    rule(count = Limiter::installed().plan_count("answers", user.plan).unwrap_or(20), per = "1h"),
    rule(count = 5_000, per = "1h", unit = "tokens"),
    until = "body",
    concurrency(limit = 1, lease = "30s", message = "wait until your other answer is over"),
    openapi = AnswerLimits
)]
async fn answer(user: User, Json(question): Json<Question>) -> Result<impl IntoResponse, Rejection> {
    // Glue begins.
    let tokens = tallygate::meter("tokens")?;
    tokens.add(question.tokens());
    // Glue ends.
    let events = model(question.longest).map(move |word| {
        // Glue begins.
        tokens.add(1);
        // Glue ends.
        Ok::<_, Infallible>(Event::default().data(word))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

/// Stands for a language model, which takes a while for each token.
fn model(longest: u32) -> impl Stream<Item = &'static str> {
    let story = ["once", "upon", "a", "time", "there", "was", "a", "limit"];
    let words = iter::zip(0..longest, story.into_iter().cycle()).map(|(_, word)| word);
    stream::iter(words).then(async |word| {
        sleep(Duration::from_millis(20)).await;
        word
    })
}
