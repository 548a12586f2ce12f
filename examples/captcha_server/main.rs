//! An HTTP server whose handlers are rate limited: `cargo run --example captcha_server -- [address]`.
//!
//! `TALLYGATE_URL` is the address of the tallies: `memory://`, the default, or `redis://host:port`, which several processes
//! can share. The server listens on `127.0.0.1:3000` by default; port 0 picks a free one.
#![allow(clippy::print_stdout, reason = "the address is for the terminal, not for the log")]

mod api_error;
mod handlers;

use std::error::Error;
use std::time::Duration;
use std::{env, io};

use tallygate::Limiter;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(io::stderr).init();

    let url = env::var("TALLYGATE_URL").unwrap_or_else(|_| "memory://".into());
    // A user who waits for a code prefers a slow answer to an error.
    Limiter::builder().deadline(Duration::from_secs(2)).connect(&url).await?.install()?;

    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".into());
    let listener = TcpListener::bind(&address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, handlers::router()).with_graceful_shutdown(asked_to_stop()).await?;
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
