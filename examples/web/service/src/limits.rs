//! What connects the service with its limits: with `answers.rs`, `main.rs` and `metrics.rs`, all that is there beside the
//! attributes of handlers and `limits.toml`. `cargo xtask size` counts the lines of it.

use std::error::Error;
use std::time::Duration;

use axum::Router;
use tallygate::Limiter;
use tallygate::web::{self, AdminRoutes, ClientIpSource};

use crate::account::User;

// Glue begins.
/// Connects to the tallies, and lets the file change limits from now on. A name in it that no limit has is an error.
pub(crate) async fn install(url: &str, file: &str) -> Result<(), Box<dyn Error>> {
    // A user who waits for a code prefers a slow answer to an error.
    Limiter::builder().deadline(Duration::from_secs(2)).connect(url).await?.install()?;
    Limiter::installed().watch_file(file)?.latest()?.require_known()?;
    Ok(())
}

/// Limits all requests as the file says, and tells keys who sends them.
pub(crate) fn around(router: Router, client_ip: ClientIpSource) -> Result<Router, tallygate::Error> {
    let context = web::Layer::new()
        .client_ip(client_ip)
        .value("user", |parts| parts.extension(|user: &User| user.name.clone()))
        .value("plan", |parts| parts.extension(|user: &User| user.plan))
        .on_success(true);
    // Added last, the context is around the limits, which know their clients by it.
    Ok(router.layer(web::limits(Limiter::installed())?).layer(context))
}

/// Shows the limits and changes them, for whoever may do so.
pub(crate) fn admin() -> Router {
    Router::new().nest_service("/admin/limits", AdminRoutes::new(Limiter::installed()))
}
// Glue ends.
