//! A service in actix-web: `cargo run -p actix-example -- [address]`.
//!
//! `TALLYGATE_URL` is where the tallies are: `memory://`, the default, or `redis://host:port`. It listens on
//! `127.0.0.1:3000` by default; port 0 picks a free one.
#![allow(clippy::print_stdout, reason = "the address is for the terminal, not for the log")]

use std::error::Error;
use std::time::Duration;
use std::{env, io};

use actix_web::web::Json;
use actix_web::{App, HttpServer, Responder, get, post};
use serde::{Deserialize, Serialize};
use tallygate::web::{self, ClientIp};
use tallygate::{Limiter, Policy, Rejection, Rule, rate_limit};

#[derive(Deserialize)]
struct CodeRequest {
    email: String,
}

#[derive(Serialize)]
struct Sent {
    sent: bool,
}

/// Mails a code. The mail address and the network of the client are limited, and decided as one.
#[post("/codes")]
#[rate_limit(
    name = "mail.code",
    key = "{request.email:trim:lower:hash}",
    rule(count = 1, per = "60s", message = "the code is on its way; try again in {@retry_after}"),
    rule(count = 20, per = "1h", key = "{@ip}")
)]
async fn codes(request: Json<CodeRequest>) -> Result<Json<Sent>, Rejection> {
    // A real service would send a mail here.
    let _ = request;
    Ok(Json(Sent { sent: true }))
}

/// Greets each client by the address that the layer has found.
#[get("/")]
#[rate_limit(name = "hello", key = "{@ip}", rule(count = 10, per = "60s"))]
async fn hello(client: ClientIp) -> impl Responder {
    format!("hello, {client}\n")
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(io::stderr).init();

    let url = env::var("TALLYGATE_URL").unwrap_or_else(|_| "memory://".into());
    // A user who waits for an answer prefers a slow one to an error.
    Limiter::builder().deadline(Duration::from_secs(2)).connect(&url).await?.install()?;

    let each_client = Policy::builder("api").rule(Rule::sliding_window(300, Duration::from_secs(60))).build()?;
    let limit = web::limit(&each_client, "{@ip}")?;
    let context = web::Layer::new().client_ip(ClientIp::socket()).on_success(true);

    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".into());
    // Wrapped last, the context is around the limit, which knows the client by it.
    let app = move || App::new().service(codes).service(hello).wrap(limit.clone()).wrap(context.clone());
    let server = HttpServer::new(app).bind(&address).map_err(|error| format!("cannot listen on {address}: {error}"))?;
    for address in server.addrs() {
        println!("listening on http://{address}");
    }
    // It ends at Ctrl-C, when the last requests are answered.
    server.run().await?;
    // What these have left to do in Redis ends before the process does.
    let left = Limiter::installed().drain(Duration::from_secs(5)).await;
    println!("left to do: {left}");
    Ok(())
}
