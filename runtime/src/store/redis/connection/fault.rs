//! What the errors of servers mean.

mod explain;
mod remedy;
mod said;
mod table;
#[cfg(test)]
mod tests;

use ::redis::{ErrorKind, RedisError};

#[cfg(feature = "admin")]
pub(crate) use self::explain::is_without_scripts;
pub(crate) use self::explain::{answer_error, attempt_error, slow_attempt};
pub(crate) use self::remedy::Remedy;
use self::said::Said;
use crate::error::BackendErrorKind;

/// What an error means for the call that got it, and for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Another node of the cluster has the key. Nothing was executed.
    Redirect,
    /// The keys are on their way to another node of the cluster. Nothing was executed.
    TryAgain,
    /// The server cannot decide now. Nothing was executed.
    Away,
    /// The same, and the address may lead to another server by now.
    Demoted,
    /// The connection is of no use any more. Whether something was executed is not known.
    Broken,
    /// What was set up, or what was sent, is mistaken. Waiting does not help.
    Wrong,
    /// Over this connection comes something else than the protocol.
    Garbled,
    /// None of those that are known.
    Unknown,
}

impl Fault {
    pub(crate) fn of(error: &RedisError) -> Self {
        match Said::of(error) {
            Some(said) => said.meaning().0,
            None => Self::of_client(error.kind()),
        }
    }

    /// What an error means that is not the server's.
    fn of_client(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Io => Self::Broken,
            ErrorKind::Parse => Self::Garbled,
            ErrorKind::AuthenticationFailed
            | ErrorKind::UnexpectedReturnType
            | ErrorKind::InvalidClientConfig
            | ErrorKind::Client
            | ErrorKind::RESP3NotSupported => Self::Wrong,
            _ => Self::Unknown,
        }
    }

    /// What the error tells a caller of a single server.
    pub(crate) fn kind(self) -> BackendErrorKind {
        match self {
            Self::Away | Self::Demoted | Self::Broken | Self::TryAgain => BackendErrorKind::Away,
            Self::Wrong | Self::Garbled | Self::Redirect => BackendErrorKind::Wrong,
            Self::Unknown => BackendErrorKind::Unknown,
        }
    }

    /// Whether nothing was executed.
    pub(crate) fn is_refusal(self) -> bool {
        matches!(self, Self::Redirect | Self::TryAgain | Self::Away | Self::Demoted)
    }

    /// Whether another connection may be better than this one.
    pub(crate) fn spoils_connection(self) -> bool {
        matches!(self, Self::Demoted | Self::Broken | Self::Garbled)
    }
}
