//! The pace as a middleware of reqwest.

use std::mem;
use std::sync::Arc;

use http::{Extensions, Request as HttpRequest, Response as HttpResponse};
use reqwest_middleware::reqwest::{Body, Request, Response, ResponseBuilderExt as _, Url};
use reqwest_middleware::{Error, Middleware, Next, Result};

use super::Pace;
use super::paced_call::{AdmittedCall, PacedBody, PacedCall};
use super::settings::{PaceSettings, PacedRequest};
use crate::field_text::host_text;

/// A middleware of the crate `reqwest-middleware`. The values of a request are those of its
/// [`with_extension`](reqwest_middleware::RequestBuilder::with_extension), too. Redirects that reqwest follows belong to their call,
/// and count no more than it. Where the key shows the host, what another host answers then pauses nothing.
///
/// A call that was not sent fails with [`Error::Middleware`], which holds the [`Rejection`](crate::Rejection).
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use reqwest_middleware::{ClientBuilder, Error, reqwest};
/// use tallygate::{Policy, Rejection, Rule, client};
///
/// # async fn call() -> Result<(), Box<dyn std::error::Error>> {
/// let policy = Policy::builder("partners").rule(Rule::sliding_window(50, Duration::from_secs(1))).pausable().build()?;
/// let pace = client::pace(&policy, "{@host}")?.wait(Duration::from_secs(30));
/// let http = ClientBuilder::new(reqwest::Client::new()).with(pace).build();
///
/// match http.get("https://partner.example/orders").send().await {
///     Ok(response) => println!("{}", response.status()),
///     Err(Error::Middleware(error)) => match error.downcast_ref::<Rejection>() {
///         Some(rejection) => println!("not sent; there is room in {:?}", rejection.retry_after()),
///         None => return Err(error.into()),
///     },
///     Err(error) => return Err(error.into()),
/// }
/// # Ok(())
/// # }
/// ```
#[async_trait::async_trait]
impl Middleware for Pace {
    async fn handle(&self, mut request: Request, extensions: &mut Extensions, next: Next<'_>) -> Result<Response> {
        let call = paced_call(&self.settings, &mut request, extensions);
        let mut call = call.admit().await.map_err(Error::middleware)?;
        let asked = request.url().clone();
        let mut response = next.run(request, extensions).await?;
        let heard = if !are_of_same_host(&asked, response.url()) && self.shows_host() {
            call.hear_redirect().await;
            self.settings.responses.read(response.status(), response.headers())
        } else {
            call.hear(response.status(), response.headers()).await
        };
        response.extensions_mut().insert(heard);
        if let Some(meters) = call.meters() {
            response.extensions_mut().insert(meters);
        }
        if call.lasts(response.version(), response.content_length()) { held(response, call) } else { Ok(response) }
    }
}

impl Pace {
    /// Whether the subject that an answer may pause is of one host.
    fn shows_host(&self) -> bool {
        self.settings.keyed.paused_key().names().any(|name| matches!(name, "host" | "header_host"))
    }
}

fn are_of_same_host(one: &Url, other: &Url) -> bool {
    one.host_str() == other.host_str() || host_text(one.authority()) == host_text(other.authority())
}

/// Prepares a call. Its settings look at the parts of a request of the crate `http`, so these are lent to one.
fn paced_call(settings: &Arc<PaceSettings>, request: &mut Request, extensions: &mut Extensions) -> PacedCall {
    let (mut parts, ()) = HttpRequest::new(()).into_parts();
    parts.method = request.method().clone();
    if settings.looks_at_parts() {
        // The client cannot send to an address that `http` cannot read.
        parts.uri = request.url().as_str().parse().unwrap_or_default();
    }
    mem::swap(&mut parts.headers, request.headers_mut());
    mem::swap(&mut parts.extensions, extensions);
    let call = PacedCall::new(settings, &PacedRequest { parts: &parts, authority: Some(request.url().authority()) });
    mem::swap(&mut parts.headers, request.headers_mut());
    mem::swap(&mut parts.extensions, extensions);
    call
}

/// Lets the call run until the body of the response ends.
fn held(response: Response, call: AdmittedCall) -> Result<Response> {
    let url: Url = response.url().clone();
    let (parts, body) = HttpResponse::<Body>::from(response).into_parts();
    let body = Body::wrap(PacedBody::new(body, call, parts.version));
    // Only a builder can give a response its address.
    let mut built = HttpResponse::builder().url(url).body(body).map_err(Error::middleware)?;
    *built.status_mut() = parts.status;
    *built.version_mut() = parts.version;
    *built.headers_mut() = parts.headers;
    built.extensions_mut().extend(parts.extensions);
    Ok(Response::from(built))
}
