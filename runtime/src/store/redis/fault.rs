//! What the errors of servers mean: the only place that knows them by code and text.

mod explain;
mod said;
#[cfg(test)]
mod tests;

use ::redis::{ErrorKind, RedisError};

pub(super) use self::explain::{answer_error, attempt_error, slow_attempt};
use self::said::Said;
use crate::error::BackendErrorKind;

/// What an error means for the call that got it, and for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
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

/// Codes of errors, and what to do about them.
const CODES: [(&str, Fault, &str); 22] = [
    ("MOVED", Fault::Redirect, CLUSTER),
    ("ASK", Fault::Redirect, CLUSTER),
    ("TRYAGAIN", Fault::TryAgain, CLUSTER),
    ("CROSSSLOT", Fault::Wrong, CLUSTER),
    ("CLUSTERDOWN", Fault::Away, ""),
    ("LOADING", Fault::Away, ""),
    ("BUSY", Fault::Away, ""),
    ("OOM", Fault::Away, "; the server is full: raise its `maxmemory`"),
    ("MISCONF", Fault::Away, ""),
    ("NOREPLICAS", Fault::Away, ""),
    ("READONLY", Fault::Demoted, "; the server is a replica: the url has to lead to the primary"),
    ("MASTERDOWN", Fault::Demoted, "; the server is a replica: the url has to lead to the primary"),
    ("UNBLOCKED", Fault::Demoted, ""),
    ("NOAUTH", Fault::Wrong, "; put user and password into the url"),
    ("WRONGPASS", Fault::Wrong, "; check user and password in the url"),
    ("NOPERM", Fault::Wrong, PERMISSIONS),
    ("NOPROTO", Fault::Wrong, VERSION),
    ("DENIED", Fault::Wrong, ""),
    ("WRONGTYPE", Fault::Wrong, "; a key with the prefix of the limiter is no tally"),
    ("NOSCRIPT", Fault::Wrong, ""),
    ("EXECABORT", Fault::Wrong, ""),
    ("TALLYGATE", Fault::Wrong, ""),
];

/// Words of errors that have no code of their own.
const WORDS: [(&str, Fault, &str); 16] = [
    ("max number of clients", Fault::Away, "; raise `maxclients` of the server"),
    ("ACL failure in script", Fault::Wrong, PERMISSIONS),
    ("The user executing the script can't", Fault::Wrong, PERMISSIONS),
    ("has no permissions", Fault::Wrong, PERMISSIONS),
    ("No permissions", Fault::Wrong, PERMISSIONS),
    ("unknown command", Fault::Wrong, VERSION),
    ("Unknown command called from", Fault::Wrong, VERSION),
    ("Unknown Redis command called from", Fault::Wrong, VERSION),
    ("wrong number of arguments", Fault::Wrong, VERSION),
    ("Wrong number of args", Fault::Wrong, VERSION),
    ("Error compiling script", Fault::Wrong, ""),
    ("Error running script", Fault::Wrong, ""),
    ("user_script:", Fault::Wrong, ""),
    ("DB index is out of range", Fault::Wrong, "; check the database in the url"),
    ("SELECT is not allowed in cluster mode", Fault::Wrong, CLUSTER),
    ("Protocol error", Fault::Wrong, ""),
];

const CLUSTER: &str = "; the server is a node of a cluster: begin the url with `redis+cluster://`";
const PERMISSIONS: &str = "; give the user the permissions that the guide lists under production";
const VERSION: &str = "; the server has to be Redis 6.2 or later, or Valkey, without renamed commands";

impl Fault {
    pub(super) fn of(error: &RedisError) -> Self {
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
    pub(super) fn kind(self) -> BackendErrorKind {
        match self {
            Self::Away | Self::Demoted | Self::Broken | Self::TryAgain => BackendErrorKind::Away,
            Self::Wrong | Self::Garbled | Self::Redirect => BackendErrorKind::Wrong,
            Self::Unknown => BackendErrorKind::Unknown,
        }
    }

    /// Whether nothing was executed.
    pub(super) fn is_refusal(self) -> bool {
        matches!(self, Self::Redirect | Self::TryAgain | Self::Away | Self::Demoted)
    }

    /// Whether another connection may be better than this one.
    pub(super) fn spoils_connection(self) -> bool {
        matches!(self, Self::Demoted | Self::Broken | Self::Garbled)
    }
}

impl Said<'_> {
    /// What the server means, and what to do about it.
    fn meaning(&self) -> (Fault, &'static str) {
        let by_code = || CODES.iter().find(|(code, ..)| *code == self.code());
        let by_words = || WORDS.iter().find(|(words, ..)| self.text().contains(words));
        by_code().or_else(by_words).map_or((Fault::Unknown, ""), |&(_, fault, advice)| (fault, advice))
    }
}
