//! Rejections as responses and errors of the types that every framework of the crate `http` has.

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use super::problem::{PROBLEM_JSON, Problem, status_of};
use crate::decision::Rejection;

impl Problem {
    /// Returns the response, with a body of any type that text becomes.
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
}

/// The response to a call that was rejected: its status, `Retry-After`, and a [`Problem`] as its body.
impl From<&Rejection> for Response<String> {
    fn from(rejection: &Rejection) -> Self {
        Problem::from(rejection).response()
    }
}

/// The status of the response: for functions that return `Result<T, StatusCode>`. A [`Layer`](super::Layer) adds
/// `Retry-After`.
impl From<Rejection> for StatusCode {
    fn from(rejection: Rejection) -> Self {
        status_of(&rejection)
    }
}

/// The status of the response and the text of the rejection: for functions that return `Result<T, (StatusCode, String)>`.
/// A [`Layer`](super::Layer) adds `Retry-After`.
impl From<Rejection> for (StatusCode, String) {
    fn from(rejection: Rejection) -> Self {
        (status_of(&rejection), Problem::from(&rejection).detail().to_owned())
    }
}
