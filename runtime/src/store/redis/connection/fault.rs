//! The meaning of errors of servers, by code and text. No other module knows them. The tables have the texts that a
//! server may answer to a limiter. `tests.rs` has them as the servers write them.

mod explain;
mod remedy;
#[cfg(test)]
mod tests;

use std::fmt;

use ::redis::{ErrorKind, RedisError};

#[cfg(feature = "admin")]
pub(crate) use self::explain::is_without_scripts;
pub(crate) use self::explain::{
    answer_error, asked_in_vain, attempt_error, is_cross_slot, is_try_again, names_several_slots, server_error,
    slow_attempt,
};
pub(crate) use self::remedy::Remedy;
use crate::error::BackendErrorKind;

/// The meaning of an error for its call and for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Another node of the cluster has the key. Nothing was executed.
    Redirect,
    /// The keys are moving to another node of the cluster. Nothing was executed.
    TryAgain,
    /// The server cannot decide now. Nothing was executed.
    Away,
    /// The server is no longer a primary. Its address may already lead to another one.
    Demoted,
    /// The connection is of no use any more. It is unknown whether something was executed.
    Broken,
    /// The setup or the request is wrong. Waiting does not help.
    Wrong,
    /// The bytes of the connection are not those of the protocol.
    Garbled,
    /// No table has the error.
    Unknown,
}

impl Fault {
    pub(crate) fn of(error: &RedisError) -> Self {
        match ServerMessage::of(error) {
            Some(message) => message.meaning().0,
            None => Self::of_client(error.kind()),
        }
    }

    /// Returns the meaning of an error of the client library.
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

    /// Returns the kind of error for a caller of a single server.
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

/// A text in an answer, its meaning, and the remedy.
type FaultRow = (&'static str, Fault, Remedy);

/// The codes of errors.
const CODES: [FaultRow; 24] = [
    ("MOVED", Fault::Redirect, Remedy::Cluster),
    ("ASK", Fault::Redirect, Remedy::Cluster),
    ("TRYAGAIN", Fault::TryAgain, Remedy::Cluster),
    ("CROSSSLOT", Fault::Wrong, Remedy::Cluster),
    ("CLUSTERDOWN", Fault::Away, NOTHING),
    ("LOADING", Fault::Away, NOTHING),
    ("BUSY", Fault::Away, NOTHING),
    ("OOM", Fault::Away, Remedy::Fixed("the server is full: raise its `maxmemory`")),
    ("MISCONF", Fault::Away, NOTHING),
    ("NOREPLICAS", Fault::Away, NOTHING),
    ("READONLY", Fault::Demoted, Remedy::Primary),
    ("MASTERDOWN", Fault::Demoted, Remedy::Primary),
    ("REDIRECT", Fault::Demoted, Remedy::Primary),
    ("UNBLOCKED", Fault::Demoted, NOTHING),
    ("NOAUTH", Fault::Wrong, Remedy::Login),
    ("WRONGPASS", Fault::Wrong, Remedy::OtherLogin),
    ("NOPERM", Fault::Wrong, PERMISSIONS),
    ("NOPROTO", Fault::Wrong, VERSION),
    ("DENIED", Fault::Wrong, NOTHING),
    (
        "WRONGTYPE",
        Fault::Wrong,
        Remedy::Fixed("a key with the prefix of the limiter is no tally: reset its subject, or remove it"),
    ),
    ("NOSCRIPT", Fault::Wrong, NOTHING),
    ("EXECABORT", Fault::Wrong, NOTHING),
    ("NOSUB", Fault::Wrong, NOTHING),
    ("TALLYGATE", Fault::Wrong, NOTHING),
];

/// Words of errors without a code of their own. The first match counts.
const WORDS: [FaultRow; 44] = [
    // Waiting may help.
    ("max number of clients", Fault::Away, Remedy::Fixed("raise `maxclients` of the server")),
    ("cluster is down", Fault::Away, NOTHING),
    ("slot not served", Fault::Away, NOTHING),
    ("Script killed by user", Fault::Away, NOTHING),
    ("on a stale replica", Fault::Demoted, Remedy::Primary),
    // The address or the login.
    ("cluster support disabled", Fault::Wrong, Remedy::NoCluster),
    ("SELECT is not allowed in cluster mode", Fault::Wrong, Remedy::Cluster),
    ("DB index is out of range", Fault::Wrong, Remedy::Fixed("check the database in the url")),
    ("without any password configured", Fault::Wrong, Remedy::OtherLogin),
    // The permissions.
    ("ACL failure in script", Fault::Wrong, PERMISSIONS),
    ("The user executing the script", Fault::Wrong, PERMISSIONS),
    ("no permission", Fault::Wrong, PERMISSIONS),
    ("No permission", Fault::Wrong, PERMISSIONS),
    // A feature that the server lacks.
    (NO_ENGINE, Fault::Wrong, SCRIPTS),
    ("unknown command", Fault::Wrong, VERSION),
    ("unknown subcommand", Fault::Wrong, VERSION),
    ("Unknown subcommand", Fault::Wrong, VERSION),
    ("Unknown command called from", Fault::Wrong, VERSION),
    ("Unknown Redis command called from", Fault::Wrong, VERSION),
    ("wrong number of arguments", Fault::Wrong, VERSION),
    ("Wrong number of arg", Fault::Wrong, VERSION),
    ("Syntax error in HELLO", Fault::Wrong, VERSION),
    ("Unsupported option", Fault::Wrong, VERSION),
    ("Protocol error", Fault::Wrong, NOTHING),
    ("are allowed in this context", Fault::Wrong, NOTHING),
    // The script.
    ("Error compiling script", Fault::Wrong, NOTHING),
    ("Error running script", Fault::Wrong, NOTHING),
    ("user_script:", Fault::Wrong, NOTHING),
    ("script shebang", Fault::Wrong, NOTHING),
    ("not allowed from script", Fault::Wrong, IN_SCRIPTS),
    ("not allowed on script mode", Fault::Wrong, IN_SCRIPTS),
    ("after non deterministic", Fault::Wrong, IN_SCRIPTS),
    ("rite command", Fault::Wrong, NOTHING),
    ("undeclared keys", Fault::Wrong, NOTHING),
    ("non local key", Fault::Wrong, Remedy::Cluster),
    ("hash to the same slot", Fault::Wrong, Remedy::Cluster),
    // The request was wrong.
    ("syntax error", Fault::Wrong, NOTHING),
    ("not an integer", Fault::Wrong, NOTHING),
    ("not a valid float", Fault::Wrong, NOTHING),
    ("out of range", Fault::Wrong, NOTHING),
    ("exceeds maximum allowed size", Fault::Wrong, NOTHING),
    ("invalid expire time", Fault::Wrong, NOTHING),
    ("Number of keys can't be", Fault::Wrong, NOTHING),
    ("invalid cursor", Fault::Wrong, NOTHING),
];

/// The words of a server that was started or built without scripts.
const NO_ENGINE: &str = "Could not find scripting engine";

const NOTHING: Remedy = Remedy::Fixed("");
const PERMISSIONS: Remedy = Remedy::Fixed("give the user the permissions that the guide lists under production");
const SCRIPTS: Remedy =
    Remedy::Fixed("scripts are disabled on the server, and decide every call: restart it with its module `lua`");
const VERSION: Remedy = Remedy::Fixed(
    "the server has to be Redis 6.2 or later, or Valkey, without renamed commands and without a proxy that refuses some",
);
const IN_SCRIPTS: Remedy = Remedy::Fixed(
    "the server refuses a command in scripts that decide calls, like `TIME`: no setting of the limiter helps, so use another \
     server; the guide lists under managed servers what calls need",
);

/// The text before the values that an answer quotes: keys, and for a greeting the password.
const QUOTED: &str = ", with args beginning with";

/// The text before the error of a script in Redis 6.
const RUNNING: &str = "Error running script (call to f_";

/// The code of an error and the text after it, like `OOM` and `command not allowed …`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ServerMessage<'a> {
    code: &'a str,
    text: &'a str,
}

impl<'a> ServerMessage<'a> {
    /// Returns the message; `None` if the error is not the server's.
    fn of(error: &'a RedisError) -> Option<Self> {
        error.code().map(|code| Self::read(code, error.detail().unwrap_or_default()))
    }

    fn read(code: &'a str, text: &'a str) -> Self {
        let text = without_quote(text);
        match wrapped(text).filter(|_| code == "ERR") {
            Some(inner) => Self::split(inner),
            None => Self { code, text: without_place(text) },
        }
    }

    /// Splits an error of a script in Redis 6 into code and text. Without a code, it is an error of the script itself.
    fn split(inner: &'a str) -> Self {
        let inner = inner.trim_start_matches('-');
        match inner.split_once(' ').filter(|(code, _)| is_code(code)) {
            Some((code, text)) => Self { code, text },
            None => Self { code: "ERR", text: inner },
        }
    }

    /// Returns the meaning of the message, and the remedy.
    fn meaning(&self) -> (Fault, Remedy) {
        let by_code = || CODES.iter().find(|(code, ..)| *code == self.code);
        let by_words = || WORDS.iter().find(|(words, ..)| self.text.contains(words));
        by_code().or_else(by_words).map_or((Fault::Unknown, NOTHING), |&(_, fault, remedy)| (fault, remedy))
    }
}

impl fmt::Display for ServerMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.text.trim_end_matches(['.', ' ']))
    }
}

/// Removes the values that an answer quotes.
fn without_quote(text: &str) -> &str {
    text.split_once(QUOTED).map_or(text, |(text, _)| text)
}

/// Returns the end of `Error running script (call to f_…): @user_script:1: @user_script: 1: -OOM command not allowed`.
fn wrapped(text: &str) -> Option<&str> {
    let (_, mut inner) = text.strip_prefix(RUNNING)?.split_once("): ")?;
    while let Some(rest) = inner.strip_prefix("@user_script:") {
        inner = rest.split_once(": ")?.1;
    }
    Some(inner).filter(|inner| !inner.is_empty())
}

/// Removes the line of the script: ` script: 0123…, on @user_script:7.`
fn without_place(text: &str) -> &str {
    let (before, place) = text.rsplit_once(" script: ").unwrap_or((text, ""));
    if place.contains("on @user_script:") { before } else { text }
}

fn is_code(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase())
}
