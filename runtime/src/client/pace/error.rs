//! Why a paced call has no response.

use std::error::Error;
use std::fmt;
#[cfg(feature = "tonic")]
use std::sync::Arc;

use crate::decision::Rejection;

/// An error of any client. It is boxed, as clients that are put together have errors of this type.
pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// Why a call of a [`PaceService`](super::PaceService) has no response.
#[derive(Debug)]
#[non_exhaustive]
pub enum PaceError {
    /// The call was not sent, as the policy rejects it. Nothing of its body was read.
    Rejected(Rejection),
    /// The client failed, with this error.
    Client(BoxError),
}

impl PaceError {
    /// Returns the rejection, if the call was not sent.
    #[must_use]
    pub fn rejection(&self) -> Option<&Rejection> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            Self::Client(_) => None,
        }
    }
}

impl fmt::Display for PaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejection) => write!(f, "the call was not sent: {rejection}"),
            Self::Client(error) => error.fmt(f),
        }
    }
}

impl Error for PaceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            Self::Client(error) => error.source(),
        }
    }
}

/// The status of the rejection, which is also its source, or that of the client's error.
#[cfg(feature = "tonic")]
impl From<PaceError> for tonic::Status {
    fn from(error: PaceError) -> Self {
        match error {
            PaceError::Rejected(rejection) => {
                let mut status = Self::from(rejection.clone());
                status.set_source(Arc::new(rejection));
                status
            }
            PaceError::Client(error) => Self::from_error(error),
        }
    }
}
