//! Answers of a language model, streamed as server-sent events. Each user has one answer at a time, so many in an hour as the plan
//! has, and a budget of tokens.

use std::convert::Infallible;
use std::iter;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Deserialize;
use tallygate::{Limiter, Meter, Policy, Rejection, Rule, Subject, rate_limit};
use tokio::time::sleep;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::account::User;

/// How many tokens a user has in an hour.
const BUDGET: u64 = 5_000;

pub(crate) fn router() -> Result<OpenApiRouter, tallygate::Error> {
    // Glue begins.
    let hourly = Rule::sliding_window(BUDGET, Duration::from_secs(3_600));
    let budget = Policy::builder("answers.tokens").rule(hourly).build()?;
    // Glue ends.
    Ok(OpenApiRouter::new().routes(routes!(answer)).with_state(budget))
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
    rule(count = Limiter::installed().plan_count("answers", user.plan).unwrap_or(20), per = "1h"),
    until = "body",
    concurrency(limit = 1, lease = "30s", message = "wait until your other answer is over"),
    openapi = AnswerLimits
)]
async fn answer(
    user: User,
    State(budget): State<Policy>,
    Json(question): Json<Question>,
) -> Result<impl IntoResponse, Rejection> {
    let tokens = reserve(&budget, &user, question.tokens() + u64::from(question.longest)).await?;
    tokens.add(question.tokens());
    let events = model(question.longest).map(move |word| {
        tokens.add(1);
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

// Glue begins.
/// Reserves so many tokens. What is not used of them is given back when the stream that holds them ends.
async fn reserve(budget: &Policy, user: &User, most: u64) -> Result<Meter, Rejection> {
    let (limiter, user) = (Limiter::installed(), Subject::of(&user.name));
    Ok(limiter.check(budget, &user).cost(most.max(1)).refundable().await?.into_result()?.meter("calls")?)
}
// Glue ends.
