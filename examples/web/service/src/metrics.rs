//! The metrics, for Prometheus.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use tokio::time::interval;

/// Where the buckets of decision times end, in seconds. Without buckets there are quantiles of this process, from which
/// nobody can compute those of a fleet.
const SECONDS: [f64; 13] = [0.000_01, 0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5];

/// Serves the metrics on an address of their own, which clients of the service do not reach. Returns that address.
pub(crate) async fn serve(address: &str) -> Result<SocketAddr, Box<dyn Error>> {
    // Glue begins.
    let seconds = Matcher::Full("tallygate_decision_seconds".to_owned());
    let exporter = PrometheusBuilder::new().set_buckets_for_metric(seconds, &SECONDS)?;
    // Glue ends.
    let metrics = exporter.install_recorder()?;
    let listener = TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    let address = listener.local_addr()?;
    tokio::spawn(keep_small(metrics.clone()));
    let router = Router::new().route("/metrics", get(async move || metrics.render()));
    tokio::spawn(axum::serve(listener, router).into_future());
    Ok(address)
}

/// Gathers what was recorded since the last time, so that it does not pile up where nobody asks for it.
async fn keep_small(metrics: PrometheusHandle) {
    let mut ticks = interval(Duration::from_secs(5));
    loop {
        ticks.tick().await;
        metrics.run_upkeep();
    }
}
