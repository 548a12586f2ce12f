//! A service in axum: `cargo run -p axum-example -- [address]`.
//!
//! | variable | meaning | default |
//! | --- | --- | --- |
//! | `TALLYGATE_URL` | where the tallies are, like `redis://host:port` | `memory://` |
//! | `TRUSTED_PROXIES` | the networks of the proxies in front of it, like `10.0.0.0/8,fd00::/8` | none |
//! | `ADMIN_TOKEN` | what support sends as `Authorization: Bearer …` | no routes for support |
//! | `METRICS_ADDRESS` | where Prometheus gets `/metrics`, like `127.0.0.1:9000` | no metrics |
//!
//! It listens on `127.0.0.1:3000` by default; port 0 picks a free one.
#![allow(clippy::print_stdout, reason = "the address is for the terminal, not for the log")]

mod admin;
mod answers;
mod handlers;
mod metrics;

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;
use std::{env, io};

use axum::Router;
use axum::routing::get;
use tallygate::web::{self, ClientIp, ClientIpSource};
use tallygate::{Limiter, OnOutage, Policy, Rule};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(io::stderr).init();

    let metrics = match env::var("METRICS_ADDRESS") {
        Ok(address) => Some(metrics::serve(&address).await?),
        Err(_) => None,
    };
    let url = env::var("TALLYGATE_URL").unwrap_or_else(|_| "memory://".into());
    // A user who waits for a code prefers a slow answer to an error.
    Limiter::builder().deadline(Duration::from_secs(2)).connect(&url).await?.install()?;

    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".into());
    let listener = TcpListener::bind(&address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    println!("listening on http://{}", listener.local_addr()?);
    if let Some(address) = metrics {
        println!("metrics on http://{address}/metrics");
    }
    // With the addresses of the sockets, which `{@ip}` shows.
    let service = router()?.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).with_graceful_shutdown(asked_to_stop()).await?;
    Ok(())
}

fn router() -> Result<Router, tallygate::Error> {
    let each_client = Policy::builder("api").rule(Rule::sliding_window(300, Duration::from_secs(60)));
    // Without Redis, this process counts its clients alone.
    let each_client = each_client.on_outage(OnOutage::Local).build()?;
    let context = web::Layer::new()
        .client_ip(client_ip()?)
        // A real service takes the user from a session that it has verified.
        .value("user", |parts| Some(parts.header("x-user").unwrap_or("guest").to_owned()))
        .on_success(true);
    let support = env::var("ADMIN_TOKEN").map(|token| admin::router(&token)).unwrap_or_default();
    Ok(handlers::router()
        .merge(answers::router()?)
        .nest("/admin", support)
        .route("/health", get(|| async { "well" }))
        .layer(web::limit(&each_client, "{@ip}")?.exempt_paths(["/health"])?)
        // Added last, so it is around all others: limits know their client by it.
        .layer(context))
}

fn client_ip() -> Result<ClientIpSource, tallygate::Error> {
    match env::var("TRUSTED_PROXIES") {
        Ok(networks) => ClientIp::behind(networks.split(',').map(str::trim)),
        Err(_) => Ok(ClientIp::socket()),
    }
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
