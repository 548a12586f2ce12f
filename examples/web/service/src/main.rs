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
mod metrics;

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;
use std::{env, io};

use axum::routing::get;
use axum::{Json, Router, middleware};
use tallygate::Limiter;
use tallygate::web::{self, AdminRoutes, ClientIp};
use tokio::net::TcpListener;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;

use crate::account::User;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(io::stderr).init();

    let metrics = match env::var("METRICS_ADDRESS") {
        Ok(address) => Some(metrics::serve(&address).await?),
        Err(_) => None,
    };
    let url = env::var("TALLYGATE_URL").unwrap_or_else(|_| "memory://".into());
    let file = env::var("LIMITS_FILE").unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/limits.toml").into());
    // Glue begins.
    // A user who waits for a code prefers a slow answer to an error.
    Limiter::builder().deadline(Duration::from_secs(2)).connect(&url).await?.install()?;
    let limits = Limiter::installed().watch_file(file)?;
    // Glue ends.
    let service = router()?;
    // Glue begins.
    // Now all limits are there: a name in the file that none of them has is an error.
    limits.latest()?.require_known()?;
    // Glue ends.

    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".into());
    let listener = TcpListener::bind(&address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    println!("listening on http://{}", listener.local_addr()?);
    if let Some(address) = metrics {
        println!("metrics on http://{address}/metrics");
    }
    // With the addresses of the sockets, which `{@ip}` shows.
    let service = service.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).with_graceful_shutdown(asked_to_stop()).await?;
    // Glue begins.
    let left = Limiter::installed().drain(Duration::from_secs(5)).await;
    // Glue ends.
    if !left.is_nothing() {
        tracing::warn!("not done before the end: {left}");
    }
    Ok(())
}

#[derive(utoipa::OpenApi)]
#[openapi(info(title = "A limited service", description = "Codes, answers, and what support can do."))]
struct Document;

fn router() -> Result<Router, tallygate::Error> {
    let documented = OpenApiRouter::with_openapi(Document::openapi());
    let (routes, document) = documented.merge(handlers::router()).merge(answers::router()).split_for_parts();
    // Glue begins.
    let proxies = env::var("TRUSTED_PROXIES").map(|networks| ClientIp::behind(networks.split(',').map(str::trim)));
    let context = web::Layer::new()
        .client_ip(proxies.unwrap_or_else(|_| Ok(ClientIp::socket()))?)
        .value("user", |parts| parts.extension(|user: &User| user.name.clone()))
        .value("plan", |parts| parts.extension(|user: &User| user.plan))
        .on_success(true);
    let document = document.nest("/admin/limits", AdminRoutes::openapi());
    let limits = Router::new().nest_service("/admin/limits", AdminRoutes::new(Limiter::installed()));
    // Glue ends.
    let support = env::var("ADMIN_TOKEN").map(|token| admin::for_support(limits, &token)).unwrap_or_default();
    let service = routes.merge(support).route("/openapi.json", get(async move || Json(document)));
    Ok(service
        .route("/health", get(async || "well"))
        // Glue begins.
        .layer(web::limits(Limiter::installed())?)
        // Added later, so it is around the limits, which know their clients by it.
        .layer(context)
        // Glue ends.
        .layer(middleware::from_fn(account::sign_in)))
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
