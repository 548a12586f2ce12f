//! The handlers, each under its own limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tallygate::rate_limit;

use crate::api_error::ApiError;

/// What this process has done since its start.
#[derive(Default)]
pub(crate) struct Done {
    codes: AtomicU64,
    draws: AtomicU64,
}

pub(crate) fn router() -> Router {
    Router::new()
        .route("/captcha", post(captcha))
        .route("/lottery", post(lottery))
        .route("/report", get(report))
        .with_state(Arc::<Done>::default())
}

#[derive(Deserialize)]
struct CaptchaRequest {
    phone: String,
}

#[derive(Serialize)]
struct Sent {
    sent: bool,
}

/// Sends a code to a phone. Each phone is counted by itself.
#[rate_limit(
    name = "captcha",
    key = "{request.phone}",
    rule(count = 1, per = "60s"),
    rule(count = 5, per = "1h"),
    rule(count = 10, per = "24h")
)]
async fn captcha(State(done): State<Arc<Done>>, Json(request): Json<CaptchaRequest>) -> Result<Json<Sent>, ApiError> {
    let digits = request.phone.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || !(5..=15).contains(&request.phone.len()) {
        return Err(ApiError::NoPhone);
    }
    // A real server would send a message here.
    done.codes.fetch_add(1, Ordering::Relaxed);
    Ok(Json(Sent { sent: true }))
}

#[derive(Deserialize)]
struct LotteryRequest {
    user: String,
}

#[derive(Serialize)]
struct Ticket {
    number: u8,
}

/// Draws a number for a user. A second click within five seconds is a duplicate.
#[rate_limit(
    name = "lottery",
    key = "{user}",
    rule(count = 10, per = "60s"),
    rule(count = 20, per = "120s"),
    prevent_duplicate
)]
async fn lottery(
    State(done): State<Arc<Done>>,
    Json(LotteryRequest { user }): Json<LotteryRequest>,
) -> Result<Json<Ticket>, ApiError> {
    done.draws.fetch_add(1, Ordering::Relaxed);
    Ok(Json(Ticket { number: fastrand::u8(1..=49) }))
}

#[derive(Serialize)]
struct Report {
    codes: u64,
    draws: u64,
}

/// Reports what was done. Without a key, all callers share one tally.
#[rate_limit(name = "report", rule(count = 10, per = "60s"))]
async fn report(State(done): State<Arc<Done>>) -> Result<Json<Report>, ApiError> {
    Ok(Json(Report { codes: done.codes.load(Ordering::Relaxed), draws: done.draws.load(Ordering::Relaxed) }))
}
