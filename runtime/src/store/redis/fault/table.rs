//! The errors of servers, by code and text: the only place that knows them.
//!
//! A text stands here if a server may answer it to what a limiter sends. `answers.rs` has them as the servers write them.

use super::Fault;
use super::said::Said;

/// What stands in an answer, what that means, and what to do about it.
type Row = (&'static str, Fault, &'static str);

/// Codes of errors.
pub(super) const CODES: [Row; 24] = [
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
    ("READONLY", Fault::Demoted, REPLICA),
    ("MASTERDOWN", Fault::Demoted, REPLICA),
    ("REDIRECT", Fault::Demoted, REPLICA),
    ("UNBLOCKED", Fault::Demoted, ""),
    ("NOAUTH", Fault::Wrong, "; put user and password into the url"),
    ("WRONGPASS", Fault::Wrong, "; check user and password in the url"),
    ("NOPERM", Fault::Wrong, PERMISSIONS),
    ("NOPROTO", Fault::Wrong, VERSION),
    ("DENIED", Fault::Wrong, ""),
    ("WRONGTYPE", Fault::Wrong, "; a key with the prefix of the limiter is no tally"),
    ("NOSCRIPT", Fault::Wrong, ""),
    ("EXECABORT", Fault::Wrong, ""),
    ("NOSUB", Fault::Wrong, ""),
    ("TALLYGATE", Fault::Wrong, ""),
];

/// Words of errors that have no code of their own. The first that fit count.
pub(super) const WORDS: [Row; 43] = [
    // What waiting may change.
    ("max number of clients", Fault::Away, "; raise `maxclients` of the server"),
    ("cluster is down", Fault::Away, ""),
    ("slot not served", Fault::Away, ""),
    ("Script killed by user", Fault::Away, ""),
    ("on a stale replica", Fault::Demoted, REPLICA),
    // The address or the login.
    ("cluster support disabled", Fault::Wrong, "; the server is not part of a cluster: begin the url with `redis://`"),
    ("SELECT is not allowed in cluster mode", Fault::Wrong, CLUSTER),
    ("DB index is out of range", Fault::Wrong, "; check the database in the url"),
    ("without any password configured", Fault::Wrong, "; check user and password in the url"),
    // The permissions.
    ("ACL failure in script", Fault::Wrong, PERMISSIONS),
    ("The user executing the script", Fault::Wrong, PERMISSIONS),
    ("no permission", Fault::Wrong, PERMISSIONS),
    ("No permission", Fault::Wrong, PERMISSIONS),
    // What the server can do.
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
    ("Protocol error", Fault::Wrong, ""),
    ("are allowed in this context", Fault::Wrong, ""),
    // The script.
    ("Error compiling script", Fault::Wrong, ""),
    ("Error running script", Fault::Wrong, ""),
    ("user_script:", Fault::Wrong, ""),
    ("script shebang", Fault::Wrong, ""),
    ("not allowed from script", Fault::Wrong, ""),
    ("not allowed on script mode", Fault::Wrong, ""),
    ("rite command", Fault::Wrong, ""),
    ("undeclared keys", Fault::Wrong, ""),
    ("non local key", Fault::Wrong, CLUSTER),
    ("hash to the same slot", Fault::Wrong, CLUSTER),
    // What was sent.
    ("syntax error", Fault::Wrong, ""),
    ("not an integer", Fault::Wrong, ""),
    ("not a valid float", Fault::Wrong, ""),
    ("out of range", Fault::Wrong, ""),
    ("exceeds maximum allowed size", Fault::Wrong, ""),
    ("invalid expire time", Fault::Wrong, ""),
    ("Number of keys can't be", Fault::Wrong, ""),
    ("invalid cursor", Fault::Wrong, ""),
];

/// The words of a server that was started or built without scripts.
pub(super) const NO_ENGINE: &str = "Could not find scripting engine";

const CLUSTER: &str = "; the server is a node of a cluster: begin the url with `redis+cluster://`";
const PERMISSIONS: &str = "; give the user the permissions that the guide lists under production";
const REPLICA: &str = "; the server is a replica: the url has to lead to the primary";
const SCRIPTS: &str = "; scripts are disabled on the server, and decide every call: restart it with its module `lua`";
const VERSION: &str = "; the server has to be Redis 6.2 or later, or Valkey, without renamed commands";

impl Said<'_> {
    /// What the server means, and what to do about it.
    pub(super) fn meaning(&self) -> (Fault, &'static str) {
        let by_code = || CODES.iter().find(|(code, ..)| *code == self.code());
        let by_words = || WORDS.iter().find(|(words, ..)| self.text().contains(words));
        by_code().or_else(by_words).map_or((Fault::Unknown, ""), |&(_, fault, advice)| (fault, advice))
    }
}
