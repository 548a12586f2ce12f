//! A service in axum: `cargo run -p axum-example -- [address]`.
//!
//! `TALLYGATE_URL` is where the tallies are: `memory://`, the default, or `redis://host:port`. It listens on
//! `127.0.0.1:3000` by default; port 0 picks a free one.
#![allow(clippy::print_stdout, reason = "the address is for the terminal, not for the log")]

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;
use std::{env, io};

use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tallygate::web::{self, ClientIp};
use tallygate::{Limiter, Policy, Rejection, Rule, rate_limit};
use tokio::net::TcpListener;

#[derive(Deserialize)]
struct CodeRequest {
    email: String,
}

#[derive(Serialize)]
struct Sent {
    sent: bool,
}

/// Mails a code. The mail address and the network of the client are limited, and decided as one.
#[rate_limit(
    name = "mail.code",
    key = "{request.email:trim:lower:hash}",
    rule(count = 1, per = "60s", message = "the code is on its way; try again in {@retry_after}"),
    rule(count = 20, per = "1h", key = "{@ip}")
)]
async fn codes(Json(request): Json<CodeRequest>) -> Result<Json<Sent>, Rejection> {
    // A real service would send a mail here.
    let _ = request;
    Ok(Json(Sent { sent: true }))
}

/// Greets each client by the address that the layer has found.
#[rate_limit(name = "hello", key = "{@ip}", rule(count = 10, per = "60s"))]
async fn hello(client: ClientIp) -> impl IntoResponse {
    format!("hello, {client}\n")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(io::stderr).init();

    let url = env::var("TALLYGATE_URL").unwrap_or_else(|_| "memory://".into());
    // A user who waits for an answer prefers a slow one to an error.
    Limiter::builder().deadline(Duration::from_secs(2)).connect(&url).await?.install()?;

    let each_client = Policy::builder("api").rule(Rule::sliding_window(300, Duration::from_secs(60))).build()?;
    let router = Router::new()
        .route("/codes", post(codes))
        .route("/", get(hello))
        .layer(web::limit(&each_client, "{@ip}")?)
        // Added last, the context is around the limit, which knows the client by it.
        .layer(web::Layer::new().client_ip(ClientIp::socket()).on_success(true));

    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".into());
    let listener = TcpListener::bind(&address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    println!("listening on http://{}", listener.local_addr()?);
    // With the addresses of the sockets, which `{@ip}` shows.
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).with_graceful_shutdown(async { drop(tokio::signal::ctrl_c().await) }).await?;
    // What the last requests have left to do in Redis ends before the process does.
    let left = Limiter::installed().drain(Duration::from_secs(5)).await;
    println!("left to do: {left}");
    Ok(())
}
