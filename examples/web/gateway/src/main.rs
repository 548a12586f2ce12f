//! A gateway to a language model: `cargo run -p gateway-example -- [address]`.
//!
//! `TALLYGATE_URL` is where the tallies are: `memory://`, the default, or `redis://host:port`. It listens on
//! `127.0.0.1:3000` by default; port 0 picks a free one.
#![allow(clippy::print_stdout, reason = "the address is for the terminal, not for the log")]

mod chat;
mod errors;
mod model;
mod users;

use std::error::Error;
use std::time::Duration;
use std::{env, io};

use axum::Router;
use axum::routing::post;
use tallygate::Limiter;
use tallygate::web::{Layer, Legacy};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(io::stderr).init();

    let url = env::var("TALLYGATE_URL").unwrap_or_else(|_| "memory://".into());
    // Glue begins.
    // Two of these processes usually run: while Redis is away, each decides by half of every limit.
    Limiter::builder().processes(2).deadline(Duration::from_secs(2)).connect(&url).await?.install()?;
    let layer = Layer::new().reject(errors::rejected).fields(None).legacy(Legacy::XRateLimitByUnit).on_success(true);
    // Glue ends.
    let service = Router::new().route("/v1/chat/completions", post(chat::complete)).layer(layer);

    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".into());
    let listener = TcpListener::bind(&address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, service).with_graceful_shutdown(asked_to_stop()).await?;
    // Glue begins.
    // All streams have ended: what they have used is on its way to Redis.
    let left = Limiter::installed().drain(Duration::from_secs(5)).await;
    // Glue ends.
    if !left.is_nothing() {
        tracing::warn!("not done before the end: {left}");
    }
    Ok(())
}

/// Waits for Ctrl-C, or for what a service manager sends.
async fn asked_to_stop() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    if let Ok(mut terminated) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            _ = interrupted => {}
            _ = terminated.recv() => {}
        }
        return;
    }
    let _ = interrupted.await;
}
