//! What support can do with limits, for who knows its token.

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};

/// Lets requests with the token alone reach these routes.
pub(crate) fn for_support(routes: Router, token: &str) -> Router {
    let expected = format!("Bearer {token}");
    let check = move |request: Request, next: Next| {
        let is_known = request.headers().get(header::AUTHORIZATION).is_some_and(|given| *given == *expected);
        async move { if is_known { Ok(next.run(request).await) } else { Err(StatusCode::UNAUTHORIZED) } }
    };
    // No other path asks for it.
    routes.route_layer(middleware::from_fn::<_, (Request,)>(check))
}
