//! The body of a response to a call that was rejected: problem details.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde::ser::{Serialize, SerializeMap as _, Serializer};

use super::fields::{limit_name, whole_seconds};
use crate::context::{self, Context};
use crate::decision::{Rejection, RejectionKind};

/// The media type of problem details in JSON.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// The content of a response to a rejected call, as problem details (RFC 9457).
///
/// | member | value |
/// | --- | --- |
/// | `type` | the problem type: see below |
/// | `title` | a sentence for the type |
/// | `status` | the status, again |
/// | `detail` | the text of the rejection, or of [`Context::messages`](crate::context::Context::messages) |
/// | `kind` | the [kind](RejectionKind::as_str) of the rejection |
/// | `violated-policies` | the limit that denied the call, named as in the fields of the response |
/// | `unit` | the unit of that limit, like `tokens`; left out if it counts requests |
/// | `retry_after_ms` | how long to wait, in milliseconds, rounded up; left out where waiting does not help |
///
/// | kind | status | type |
/// | --- | --- | --- |
/// | [`Limited`](RejectionKind::Limited) | 429 | `https://iana.org/assignments/http-problem-types#quota-exceeded` |
/// | [`Concurrency`](RejectionKind::Concurrency) | 429 | `https://iana.org/assignments/http-problem-types#quota-exceeded` |
/// | [`Paused`](RejectionKind::Paused) | 503 | `https://iana.org/assignments/http-problem-types#temporary-reduced-capacity` |
/// | [`Banned`](RejectionKind::Banned) | 429 | `https://iana.org/assignments/http-problem-types#abnormal-usage-detected` |
/// | [`Duplicate`](RejectionKind::Duplicate) | 409 | `about:blank` |
/// | [`Unavailable`](RejectionKind::Unavailable) | 503 | `https://iana.org/assignments/http-problem-types#temporary-reduced-capacity` |
/// | [`Unavailable`](RejectionKind::Unavailable), by a [mistake in the program](crate::BackendErrorKind::Misuse) | 500 | `about:blank` |
/// | [`Unidentified`](RejectionKind::Unidentified) | 401 | `about:blank` |
///
/// The types are those of draft-ietf-httpapi-ratelimit-headers-11.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tallygate::web::Problem;
/// use tallygate::{Limiter, Policy, Rejection, Rule, Subject};
///
/// let (limiter, alice) = (Limiter::in_memory(), Subject::of("alice"));
/// let policy = Policy::builder("captcha").rule(Rule::sliding_window(1, Duration::from_secs(60))).build()?;
/// assert!(limiter.check(&policy, &alice).await?.is_allowed());
/// let denial = limiter.check(&policy, &alice).await?.into_result().unwrap_err();
///
/// let problem = Problem::from(&Rejection::from(denial));
/// assert_eq!((problem.status().as_u16(), problem.retry_after_s()), (429, Some(60)));
/// let json = r##"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"detail":"too many requests: at most 1 per 1m; try again in 1m","kind":"limited","violated-policies":["captcha.1m"],"retry_after_ms":60000}"##;
/// assert_eq!(problem.to_json(), json);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    kind: RejectionKind,
    status: StatusCode,
    detail: String,
    /// The limit that denied the call, named as in the fields.
    pub(super) violated_policy: Option<String>,
    unit: Option<String>,
    retry_after: Option<Duration>,
}

impl Problem {
    /// Returns the status of the response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the value of `Retry-After`: the seconds until the same call would be admitted, rounded up. `None` if
    /// waiting does not help; then the response has no such field.
    #[must_use]
    pub fn retry_after_s(&self) -> Option<u64> {
        self.retry_after.map(whole_seconds)
    }

    /// Returns the text for the user of the client.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the body of the response, whose media type is [`PROBLEM_JSON`].
    #[must_use]
    pub fn to_json(&self) -> String {
        // Texts and numbers can always be written as JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns this problem with another text.
    #[cfg(feature = "admin")]
    pub(super) fn with_detail(self, detail: String) -> Self {
        Self { detail, ..self }
    }

    /// Returns the response, with a body of any type that text converts to.
    pub(super) fn response<B: From<String>>(&self) -> Response<B> {
        let mut response = Response::new(B::from(self.to_json()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if let Some(seconds) = self.retry_after_s() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    fn type_and_title(&self) -> (&'static str, &'static str) {
        match self.kind {
            RejectionKind::Limited | RejectionKind::Concurrency => (
                "https://iana.org/assignments/http-problem-types#quota-exceeded",
                "Request cannot be satisfied as assigned quota has been exceeded",
            ),
            RejectionKind::Banned => (
                "https://iana.org/assignments/http-problem-types#abnormal-usage-detected",
                "Request not satisfied due to detection of abnormal request pattern",
            ),
            RejectionKind::Unavailable if self.status == StatusCode::INTERNAL_SERVER_ERROR => {
                ("about:blank", "Internal Server Error")
            }
            RejectionKind::Unavailable | RejectionKind::Paused => (
                "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
                "Request cannot be satisfied due to temporary server capacity constraints",
            ),
            RejectionKind::Duplicate => ("about:blank", "Conflict"),
            RejectionKind::Unidentified => ("about:blank", "Unauthorized"),
        }
    }
}

impl From<&Rejection> for Problem {
    fn from(rejection: &Rejection) -> Self {
        // A pause is no policy of ours.
        let denial = rejection.denial().filter(|denial| denial.kind() != RejectionKind::Paused);
        let violated_policy = denial.map(|denial| {
            limit_name(denial.policy(), denial.rule().map(|limiting| (limiting.position(), limiting.rule())))
        });
        Self {
            kind: rejection.kind(),
            status: status_of(rejection),
            detail: context::message_of(rejection),
            violated_policy,
            unit: rejection.rule().and_then(|limiting| limiting.unit()).map(str::to_owned),
            retry_after: rejection.retry_after(),
        }
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (problem_type, title) = self.type_and_title();
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("type", problem_type)?;
        members.serialize_entry("title", title)?;
        members.serialize_entry("status", &self.status().as_u16())?;
        members.serialize_entry("detail", &self.detail)?;
        members.serialize_entry("kind", self.kind.as_str())?;
        members.serialize_entry("violated-policies", self.violated_policy.as_slice())?;
        if let Some(unit) = &self.unit {
            members.serialize_entry("unit", unit)?;
        }
        if let Some(retry_after) = self.retry_after {
            members.serialize_entry("retry_after_ms", &retry_after.as_micros().div_ceil(1_000))?;
        }
        members.end()
    }
}

/// The response to a call that was rejected: that of [`Layer::reject`](super::Layer::reject) within such a layer, or else the
/// status, `Retry-After`, and a [`Problem`] as the body.
impl From<&Rejection> for Response<String> {
    fn from(rejection: &Rejection) -> Self {
        let context = Context::current().unwrap_or_default();
        let Some(reject) = context.reject() else { return Problem::from(rejection).response() };
        // The function may start from the response with a problem, in whatever context it enters.
        let within = context.clone().with_reject(Arc::new(|rejection, _| Problem::from(rejection).response()));
        context::enter(&mut within.clone(), || reject(rejection, &within))
    }
}

/// The status of the response, for functions that return `Result<T, StatusCode>`. A [`Layer`](super::Layer) adds
/// `Retry-After`.
impl From<Rejection> for StatusCode {
    fn from(rejection: Rejection) -> Self {
        status_of(&rejection)
    }
}

/// The status and the text of the response, for functions that return `Result<T, (StatusCode, String)>`. A
/// [`Layer`](super::Layer) adds `Retry-After`.
impl From<Rejection> for (StatusCode, String) {
    fn from(rejection: Rejection) -> Self {
        (status_of(&rejection), Problem::from(&rejection).detail().to_owned())
    }
}

fn status_of(rejection: &Rejection) -> StatusCode {
    match rejection.kind() {
        // A retry does not help: the code has to change.
        RejectionKind::Unavailable if rejection.is_misuse() => StatusCode::INTERNAL_SERVER_ERROR,
        RejectionKind::Duplicate => StatusCode::CONFLICT,
        RejectionKind::Unavailable | RejectionKind::Paused => StatusCode::SERVICE_UNAVAILABLE,
        RejectionKind::Unidentified => StatusCode::UNAUTHORIZED,
        RejectionKind::Limited | RejectionKind::Concurrency | RejectionKind::Banned => StatusCode::TOO_MANY_REQUESTS,
    }
}
