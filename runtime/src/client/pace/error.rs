//! Why a paced call has no response.

use std::error::Error;
use std::fmt;
#[cfg(feature = "tonic")]
use std::sync::Arc;

use crate::decision::Rejection;

/// Why a call of a [`PaceService`](super::PaceService) has no response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PaceError<E> {
    /// The call was not sent, as the policy rejects it. Nothing of its body was read.
    Rejected(Rejection),
    /// The client failed.
    Client(E),
}

impl<E> PaceError<E> {
    /// Returns the rejection, if the call was not sent.
    #[must_use]
    pub fn rejection(&self) -> Option<&Rejection> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            Self::Client(_) => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for PaceError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejection) => write!(f, "the call was not sent: {rejection}"),
            Self::Client(error) => error.fmt(f),
        }
    }
}

impl<E: Error + 'static> Error for PaceError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            Self::Client(error) => error.source(),
        }
    }
}

/// The status of the rejection, which is also its source, or that of the client's error.
#[cfg(feature = "tonic")]
impl<E: Into<Box<dyn Error + Send + Sync>>> From<PaceError<E>> for tonic::Status {
    fn from(error: PaceError<E>) -> Self {
        match error {
            PaceError::Rejected(rejection) => {
                let mut status = Self::from(rejection.clone());
                status.set_source(Arc::new(rejection));
                status
            }
            PaceError::Client(error) => Self::from_error(error.into()),
        }
    }
}
