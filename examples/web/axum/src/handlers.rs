//! What clients can do, each under its own limits.

use axum::body::{self, Body};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tallygate::{Rejection, rate_limit};

pub(crate) fn router() -> Router {
    Router::new()
        .route("/codes", post(codes))
        .route("/lottery", post(lottery))
        .route("/report", get(report))
        .route("/search", get(search))
        .route("/suggestions", get(suggest))
        .route("/contacts", post(import))
        .route("/login", post(login))
}

#[derive(Deserialize)]
struct CodeRequest {
    email: String,
}

#[derive(Serialize)]
struct Sent {
    sent: bool,
}

async fn codes(Json(request): Json<CodeRequest>) -> Result<Json<Sent>, Error> {
    if !request.email.contains('@') {
        return Err(Error::NoAddress);
    }
    send_code(&request.email).await?;
    Ok(Json(Sent { sent: true }))
}

/// Mails a code. The mail address, the network of the client, and all clients together are limited, and decided as one.
#[rate_limit(
    name = "mail.code",
    key = "{email:trim:lower:hash}",
    rule(count = 1, per = "60s", name = "again", message = "the code is on its way; try again in {@retry_after}"),
    rule(count = 5, per = "1h", name = "address"),
    rule(count = 20, per = "1h", key = "{@ip}", name = "network"),
    rule(count = 1000, per = "60s", key = "all", name = "all"),
    check_fn = code_limit
)]
pub(crate) async fn send_code(email: &str) -> Result<(), Rejection> {
    // A real service would send a mail here.
    let _ = email;
    Ok(())
}

#[derive(Serialize)]
struct Ticket {
    number: u8,
}

/// Draws a number for a user. A second click is a duplicate, and who keeps clicking is banned.
#[rate_limit(
    name = "lottery",
    key = "{@user}",
    prevent_duplicate(message = "one click is enough, {@user}"),
    rule(count = 10, per = "60s"),
    ban(denials = 10, within = "1m", duration = "10m", message = "no more draws for {@retry_after}")
)]
async fn lottery() -> Result<Json<Ticket>, Rejection> {
    Ok(Json(Ticket { number: fastrand::u8(1..=49) }))
}

/// Reports to each client ten times a day. The day begins at six in Shanghai.
#[rate_limit(name = "report", key = "{@ip}", rule(count = 10, cron = "0 0 6 * * *", tz = "Asia/Shanghai"))]
async fn report() -> impl IntoResponse {
    "all is well\n"
}

/// Searches. The limit is tried out: it rejects nobody, but warns of clients that come near it. Without Redis, it does not
/// even count.
#[rate_limit(name = "search", key = "{@ip}", rule(count = 30, per = "1m"), warn_at = 0.8, shadow, on_outage = "allow")]
async fn search() -> impl IntoResponse {
    "nothing found\n"
}

/// Completes what is typed. All clients share one limit: a process takes calls of it ahead from Redis, and decides most of them
/// by itself.
#[rate_limit(name = "suggest", rule(count = 6000, per = "1m"), prefetch = "1s")]
async fn suggest() -> impl IntoResponse {
    "nothing to suggest\n"
}

/// The longest import, in bytes.
const LONGEST: usize = 1 << 20;

/// Imports contacts while they are uploaded, however long that takes. Each user has one import running at a time.
#[rate_limit(
    name = "import",
    key = "{@user}",
    concurrency(limit = 1, lease = "30s", message = "wait until your other import is over")
)]
async fn import(contacts: Body) -> Result<String, Error> {
    let contacts = body::to_bytes(contacts, LONGEST).await.map_err(|_| Error::NoContacts)?;
    let lines = contacts.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(format!("imported: {}\n", lines.count()))
}

#[derive(Deserialize)]
struct Credentials {
    user: String,
    password: String,
}

/// Logs a user in. Only failures count: a right password is refunded.
#[rate_limit(
    name = "login",
    key = "{credentials.user:trim:lower}",
    rule(count = 5, per = "10m", message = "{@count} wrong passwords in {@per} are enough; try again in {@retry_after}"),
    rule(count = 50, per = "10m", key = "{@ip}"),
    refund_if = Result::is_ok
)]
async fn login(Json(credentials): Json<Credentials>) -> Result<&'static str, Error> {
    // A real service compares digests.
    if credentials.password == "correct horse" { Ok("welcome\n") } else { Err(Error::WrongPassword) }
}

/// Why a request fails. A limited handler needs no more than `From<Rejection>`.
enum Error {
    Rejected(Rejection),
    NoAddress,
    NoContacts,
    WrongPassword,
}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        match self {
            Self::Rejected(rejection) => rejection.into_response(),
            Self::NoAddress => (StatusCode::UNPROCESSABLE_ENTITY, "`email` must be a mail address\n").into_response(),
            Self::NoContacts => (StatusCode::BAD_REQUEST, "send a megabyte of contacts at most\n").into_response(),
            Self::WrongPassword => (StatusCode::UNAUTHORIZED, "wrong password\n").into_response(),
        }
    }
}
