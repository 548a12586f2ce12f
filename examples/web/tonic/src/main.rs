//! A service in tonic: `cargo run -p tonic-example -- [address]`.
//!
//! `TALLYGATE_URL` is where the tallies are: `memory://`, the default, or `redis://host:port`. It listens on
//! `127.0.0.1:3000` by default; port 0 picks a free one.
#![allow(clippy::print_stdout, reason = "the address is for the terminal, not for the log")]

/// What `tonic-prost-build` has made of `mail.proto`.
#[allow(missing_docs, clippy::pedantic, unreachable_pub, reason = "it is generated")]
mod mail;

use std::error::Error;
use std::time::Duration;
use std::{env, io};

use tallygate::web;
use tallygate::{Limiter, Policy, Rule, rate_limit};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use self::mail::codes_server::{Codes, CodesServer};
use self::mail::{SendRequest, SendResponse};

/// Mails a code. The mail address and the network of the client are limited, and decided as one.
#[rate_limit(
    name = "mail.code",
    key = "{email:trim:lower:hash}",
    rule(count = 1, per = "60s", message = "the code is on its way; try again in {@retry_after}"),
    rule(count = 20, per = "1h", key = "{@ip}")
)]
async fn send_code(email: &str) -> Result<Response<SendResponse>, Status> {
    // A real service would send a mail here.
    let _ = email;
    Ok(Response::new(SendResponse { sent: true }))
}

struct MailedCodes;

#[tonic::async_trait]
impl Codes for MailedCodes {
    async fn send(&self, request: Request<SendRequest>) -> Result<Response<SendResponse>, Status> {
        send_code(&request.get_ref().email).await
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(io::stderr).init();

    let url = env::var("TALLYGATE_URL").unwrap_or_else(|_| "memory://".into());
    // A user who waits for an answer prefers a slow one to an error.
    Limiter::builder().deadline(Duration::from_secs(2)).connect(&url).await?.install()?;

    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".into());
    let listener = TcpListener::bind(&address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    println!("listening on http://{}", listener.local_addr()?);

    let each_client = Policy::builder("api").rule(Rule::sliding_window(300, Duration::from_secs(60))).build()?;
    Server::builder()
        // Added first, the context is around the limit, which knows the client by it.
        .layer(web::Layer::new().on_success(true))
        .layer(web::limit(&each_client, "{@ip}")?)
        .add_service(CodesServer::new(MailedCodes))
        .serve_with_incoming_shutdown(TcpIncoming::from(listener), async { drop(tokio::signal::ctrl_c().await) })
        .await?;
    // What the last requests have left to do in Redis ends before the process does.
    let left = Limiter::installed().drain(Duration::from_secs(5)).await;
    println!("left to do: {left}");
    Ok(())
}
