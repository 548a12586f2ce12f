//! What clients can do, each under its own limits.

use axum::Json;
use axum::body::{self, Body};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Result};
use serde::{Deserialize, Serialize};
use tallygate::{Rejection, rate_limit};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::account::User;

pub(crate) fn router() -> OpenApiRouter {
    OpenApiRouter::new()
        .routes(routes!(codes))
        .routes(routes!(lottery))
        .routes(routes!(report))
        .routes(routes!(search))
        .routes(routes!(suggest))
        .routes(routes!(import))
        .routes(routes!(login))
}

#[derive(Deserialize, ToSchema)]
struct CodeRequest {
    email: String,
}

#[derive(Serialize, ToSchema)]
struct Sent {
    sent: bool,
}

/// Mails a code.
#[utoipa::path(post, path = "/codes", responses((status = 200, body = Sent), CodeLimits))]
async fn codes(Json(request): Json<CodeRequest>) -> Result<Json<Sent>> {
    if !request.email.contains('@') {
        return Err((StatusCode::UNPROCESSABLE_ENTITY, "`email` must be a mail address\n").into());
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
    openapi = CodeLimits
)]
async fn send_code(email: &str) -> Result<(), Rejection> {
    // A real service would send a mail here.
    let _ = email;
    Ok(())
}

#[derive(Serialize, ToSchema)]
struct Ticket {
    number: u8,
}

/// Draws a number for a user. A second click is a duplicate, and who keeps clicking is banned.
#[utoipa::path(post, path = "/lottery", responses((status = 200, body = Ticket), LotteryLimits))]
#[rate_limit(
    name = "lottery",
    key = "{user.name}",
    prevent_duplicate(message = "one click is enough, {user.name}"),
    rule(count = 10, per = "60s"),
    ban(denials = 10, within = "1m", duration = "10m", message = "no more draws for {@retry_after}"),
    openapi = LotteryLimits
)]
async fn lottery(user: User) -> Result<Json<Ticket>> {
    Ok(Json(Ticket { number: fastrand::u8(1..=49) }))
}

/// Reports to each client ten times a day. The day begins at six in Shanghai.
#[utoipa::path(get, path = "/report", responses((status = 200, body = str), ReportLimits))]
#[rate_limit(
    name = "report",
    key = "{@ip}",
    rule(count = 10, cron = "0 0 6 * * *", tz = "Asia/Shanghai"),
    openapi = ReportLimits
)]
async fn report() -> impl IntoResponse {
    "all is well\n"
}

/// Searches. The limit is tried out: it rejects nobody, but warns of clients that come near it. Without Redis, it does not
/// even count.
#[utoipa::path(get, path = "/search", responses((status = 200, body = str)))]
#[rate_limit(name = "search", key = "{@ip}", rule(count = 30, per = "1m"), warn_at = 0.8, shadow, on_outage = "allow")]
async fn search() -> impl IntoResponse {
    "nothing found\n"
}

/// Completes what is typed. All clients share one limit: a process takes calls of it ahead from Redis, and decides most of them
/// by itself.
#[utoipa::path(get, path = "/suggestions", responses((status = 200, body = str), SuggestLimits))]
#[rate_limit(name = "suggest", rule(count = 6000, per = "1m"), prefetch = "1s", openapi = SuggestLimits)]
async fn suggest() -> impl IntoResponse {
    "nothing to suggest\n"
}

/// The longest import, in bytes.
const LONGEST: usize = 1 << 20;

/// Imports contacts while they are uploaded, however long that takes. Each user has one import running at a time;
/// another one waits for two seconds.
#[utoipa::path(post, path = "/contacts", request_body = str, responses((status = 200, body = str), ImportLimits))]
#[rate_limit(
    name = "import",
    key = "{user.name}",
    concurrency(limit = 1, lease = "30s", message = "wait until your other import is over"),
    wait = "2s",
    openapi = ImportLimits
)]
async fn import(user: User, contacts: Body) -> Result<String> {
    let contacts = body::to_bytes(contacts, LONGEST)
        .await
        .map_err(|_| (StatusCode::BAD_REQUEST, "send a megabyte of contacts at most\n"))?;
    let lines = contacts.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(format!("imported: {}\n", lines.count()))
}

#[derive(Deserialize, ToSchema)]
struct Credentials {
    user: String,
    password: String,
}

/// Logs a user in. Only failures count: a right password is refunded. Who keeps guessing is banned from the account, by the
/// network: a ban of the user would let anybody lock out anybody.
#[utoipa::path(post, path = "/login", responses((status = 200, body = str), (status = 401), LoginLimits))]
#[rate_limit(
    name = "login",
    key = "{credentials.user:trim:lower} {@ip:subnet}",
    rule(count = 5, per = "10m", message = "{@count} wrong passwords in {@per} are enough; try again in {@retry_after}"),
    rule(count = 50, per = "10m", key = "{@ip}"),
    ban(denials = 10, within = "10m", duration = "1h", message = "too many wrong passwords; try again in {@retry_after}"),
    refund_if = Result::is_ok,
    openapi = LoginLimits
)]
async fn login(Json(credentials): Json<Credentials>) -> Result<&'static str> {
    // A real service compares digests.
    if credentials.password != "correct horse" {
        return Err((StatusCode::UNAUTHORIZED, "wrong password\n").into());
    }
    Ok("welcome\n")
}
