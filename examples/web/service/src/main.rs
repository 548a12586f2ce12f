//! A whole service: `cargo run -p service-example -- [address]`.
//!
//! | variable | meaning | default |
//! | --- | --- | --- |
//! | `TALLYGATE_URL` | where the tallies are, like `redis://host:port` | `memory://` |
//! | `LIMITS_FILE` | the file of limits, which may change while the service runs | `limits.toml` beside its sources |
//! | `TRUSTED_PROXIES` | the networks of the proxies in front of it, like `10.0.0.0/8,fd00::/8` | none |
//! | `ADMIN_TOKEN` | what support sends as `Authorization: Bearer …` | no routes for support |
//! | `METRICS_ADDRESS` | where Prometheus gets `/metrics`, like `127.0.0.1:9000` | no metrics |
//!
//! It listens on `127.0.0.1:3000` by default; port 0 picks a free one.
#![allow(clippy::print_stdout, reason = "the address is for the terminal, not for the log")]

mod account;
mod admin;
mod answers;
mod handlers;
mod limits;
mod metrics;

use std::error::Error;
use std::net::SocketAddr;
use std::{env, io};

use axum::routing::get;
use axum::{Json, Router, middleware};
use tallygate::web::{ClientIp, ClientIpSource};
use tokio::net::TcpListener;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(io::stderr).init();

    let metrics = match env::var("METRICS_ADDRESS") {
        Ok(address) => Some(metrics::serve(&address).await?),
        Err(_) => None,
    };
    let url = env::var("TALLYGATE_URL").unwrap_or_else(|_| "memory://".into());
    let file = env::var("LIMITS_FILE").unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/limits.toml").into());
    limits::install(&url, &file).await?;

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
    let documented = OpenApiRouter::with_openapi(Document::openapi());
    let (routes, described) = documented.merge(handlers::router()).merge(answers::router()?).split_for_parts();
    let support = env::var("ADMIN_TOKEN").map(|token| admin::for_support(limits::admin(), &token)).unwrap_or_default();
    let service = routes
        .merge(support)
        .route("/openapi.json", get(async move || Json(described)))
        .route("/health", get(async || "well"));
    Ok(limits::around(service, client_ip()?)?.layer(middleware::from_fn(account::sign_in)))
}

#[derive(utoipa::OpenApi)]
#[openapi(info(title = "A limited service", description = "Codes, answers, and what support can do."))]
struct Document;

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
