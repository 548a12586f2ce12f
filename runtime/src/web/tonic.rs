//! Rejections as the statuses of gRPC.

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::problem::Problem;
use crate::decision::{Rejection, RejectionKind};
use crate::error::BackendError;

/// The status of a call that was rejected, whose message is the text of the rejection.
///
/// | kind | code | details |
/// | --- | --- | --- |
/// | `Limited`, `Concurrency`, `Banned` | `RESOURCE_EXHAUSTED` | `RetryInfo`, unless waiting does not help; `QuotaFailure`, whose subject is the limit |
/// | `Duplicate` | `ALREADY_EXISTS` | the same |
/// | `Unavailable` | `UNAVAILABLE`; by a [mistake in the program](crate::BackendErrorKind::Misuse) `INTERNAL` | none |
/// | `Unidentified` | `UNAUTHENTICATED` | none |
impl From<Rejection> for Status {
    fn from(rejection: Rejection) -> Self {
        let problem = Problem::from(&rejection);
        let mut details = ErrorDetails::new();
        if let Some(wait) = rejection.retry_after() {
            details.set_retry_info(Some(wait));
        }
        if let Some(limit) = &problem.violated_policy {
            details.add_quota_failure_violation(limit, problem.detail());
        }
        Self::with_error_details(code(&rejection), problem.detail(), details)
    }
}

/// The status of a rejected call that the backend did not decide.
impl From<BackendError> for Status {
    fn from(error: BackendError) -> Self {
        Rejection::from(error).into()
    }
}

fn code(rejection: &Rejection) -> Code {
    match rejection.kind() {
        RejectionKind::Limited | RejectionKind::Concurrency | RejectionKind::Banned => Code::ResourceExhausted,
        RejectionKind::Duplicate => Code::AlreadyExists,
        RejectionKind::Unavailable if rejection.is_misuse() => Code::Internal,
        RejectionKind::Unavailable => Code::Unavailable,
        RejectionKind::Unidentified => Code::Unauthenticated,
    }
}
