//! Answers of a language model, streamed as server-sent events. Each user has one answer at a time, and a budget of tokens.

use std::convert::Infallible;
use std::iter;
use std::time::Duration;

use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::post;
use axum::{Json, Router};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Deserialize;
use tallygate::{Limiter, Metered, Policy, Rejection, Rule, rate_limit};
use tokio::time::sleep;

/// How many tokens a user has in an hour.
const BUDGET: u64 = 5_000;

pub(crate) fn router() -> Result<Router, tallygate::Error> {
    let hourly = Rule::sliding_window(BUDGET, Duration::from_secs(3_600));
    let budget = Policy::builder("answers.tokens").rule(hourly).build()?;
    Ok(Router::new().route("/answers", post(answer)).with_state(budget))
}

#[derive(Deserialize)]
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
#[rate_limit(
    name = "answers",
    key = "{@user}",
    concurrency(limit = 1, lease = "30s", until = "body", message = "wait until your other answer is over")
)]
async fn answer(State(budget): State<Policy>, Json(question): Json<Question>) -> Result<impl IntoResponse, Rejection> {
    let mut tokens = reserve(&budget, &question).await?;
    tokens.add(question.tokens());
    let events = model(question.longest).map(move |word| {
        tokens.add(1);
        Ok::<_, Infallible>(Event::default().data(word))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

/// Reserves what the question and its longest answer cost. The rest is given back when the tokens are dropped.
async fn reserve(budget: &Policy, question: &Question) -> Result<Metered, Rejection> {
    let limiter = Limiter::installed();
    let user = limiter.subject().context("user").build();
    let most = (question.tokens() + u64::from(question.longest)).max(1);
    let permit = limiter.check(budget, &user).cost(most).refundable().await?.into_result()?;
    Ok(permit.metered()?)
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
