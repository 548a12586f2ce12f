//! The status of gRPC, and when it says to come back.

use http::StatusCode;
#[cfg(feature = "tonic")]
use {
    http::{HeaderMap, HeaderName, HeaderValue},
    tonic::metadata::MetadataMap,
    tonic::{Code, Status},
    tonic_types::{ErrorDetails, StatusExt as _},
};

use super::FieldReader;
#[cfg(feature = "tonic")]
use super::{Doubt, HeardPause, Moment};

/// The field with the status of an answer of gRPC. It is among the headers if there is nothing else, and else a trailer.
pub(in crate::client) const GRPC_STATUS: &str = "grpc-status";

/// The codes `RESOURCE_EXHAUSTED` and `UNAVAILABLE`.
const DENIALS: [(&str, StatusCode); 2] =
    [("8", StatusCode::TOO_MANY_REQUESTS), ("14", StatusCode::SERVICE_UNAVAILABLE)];

/// The codes that do not say that the server fails: `OK`, and those of calls that it refuses for what they ask, like a 4xx of HTTP.
const ANSWERED: [&str; 9] = ["0", "3", "5", "6", "7", "9", "10", "11", "16"];

impl FieldReader<'_> {
    /// Whether the status of gRPC is neither `OK` nor a mistake of the caller. One that is no code says nothing good.
    pub(in crate::client) fn has_failed_by_grpc(&self) -> bool {
        self.headers.get(GRPC_STATUS).is_some_and(|written| ANSWERED.iter().all(|code| written != code))
    }

    /// Returns the status of HTTP that says the same as the one of gRPC, whose answers all have the status 200. `None` if the
    /// answer is no denial of gRPC.
    pub(in crate::client) fn status_of_grpc(&self) -> Option<StatusCode> {
        let written = self.headers.get(GRPC_STATUS)?;
        DENIALS.into_iter().find(|(code, _)| written == code).map(|(_, status)| status)
    }

    /// Returns the `RetryInfo` among the details of the status.
    #[cfg(feature = "tonic")]
    pub(super) fn retry_info(&mut self) -> Option<HeardPause> {
        let written = self.headers.get(DETAILS)?;
        let Some(details) = details(written) else {
            self.doubt(Doubt::NotUnderstood(DETAILS));
            return None;
        };
        let delay = details.retry_info()?.retry_delay?;
        Some(HeardPause { duration: self.until(DETAILS, Moment::After(delay)), field: Some(DETAILS) })
    }
}

#[cfg(feature = "tonic")]
const DETAILS: &str = "grpc-status-details-bin";

#[cfg(feature = "tonic")]
fn details(written: &HeaderValue) -> Option<ErrorDetails> {
    // What is no base64 would make `Status::from_header_map` panic.
    let fields = HeaderMap::from_iter([(HeaderName::from_static(DETAILS), written.clone())]);
    let decoded = MetadataMap::from_headers(fields).get_bin(DETAILS)?.to_bytes().ok()?;
    Status::with_details(Code::ResourceExhausted, "", decoded).check_error_details().ok()
}
