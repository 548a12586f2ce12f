//! Why a paced call has no response.

use std::error::Error;
use std::fmt;

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
