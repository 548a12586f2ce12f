//! Why a command is refused, in the words of each server.

use std::borrow::Cow;

use super::arguments::Arguments;
use super::flavour::Flavour;
use super::reply::Reply;

/// The text of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal(pub(crate) Cow<'static, str>);

/// What a command is answered.
pub(crate) type Answer = Result<Reply, Refusal>;

pub(crate) const SYNTAX: Refusal = Refusal::known("ERR syntax error");
pub(crate) const NO_INTEGER: Refusal = Refusal::known("ERR value is not an integer or out of range");
pub(crate) const NO_FLOAT: Refusal = Refusal::known("ERR value is not a valid float");
pub(crate) const WRONG_TYPE: Refusal =
    Refusal::known("WRONGTYPE Operation against a key holding the wrong kind of value");
pub(crate) const NO_CLUSTER: Refusal = Refusal::known("ERR This instance has cluster support disabled");
pub(crate) const NO_LOGIN: Refusal = Refusal::known("NOAUTH Authentication required.");
pub(crate) const WRONG_LOGIN: Refusal = Refusal::known("WRONGPASS invalid username-password pair or user is disabled.");
pub(crate) const OUT_OF_MEMORY: Refusal = Refusal::known("OOM command not allowed when used memory > 'maxmemory'.");
pub(crate) const TOO_FEW_REPLICAS: Refusal = Refusal::known("NOREPLICAS Not enough good replicas to write.");
pub(crate) const READ_ONLY: Refusal = Refusal::known("READONLY You can't write against a read only replica.");
pub(crate) const STALE: Refusal =
    Refusal::known("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");

impl Refusal {
    pub(crate) const fn known(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    pub(crate) fn new(text: String) -> Self {
        Self(Cow::Owned(text))
    }

    pub(crate) fn arity(name: &str) -> Self {
        Self::new(format!("ERR wrong number of arguments for '{name}' command"))
    }

    pub(crate) fn unknown_command(flavour: Flavour, arguments: &Arguments) -> Self {
        let (open, close, between) = if flavour == Flavour::Redis62 { ("`", "`", ", ") } else { ("'", "'", " ") };
        let mut text = String::new();
        for index in 1..arguments.len() {
            if text.len() >= 128 {
                break;
            }
            let mut word = arguments.text(index);
            word.truncate((0..=128 - text.len()).rev().find(|length| word.is_char_boundary(*length)).unwrap_or(0));
            text.extend([open, &word, close, between]);
        }
        let name = arguments.text(0);
        Self::new(format!("ERR unknown command {open}{name}{close}, with args beginning with: {text}"))
    }

    pub(crate) fn unknown_subcommand(flavour: Flavour, command: &str, arguments: &Arguments) -> Self {
        let (name, subcommand) = (command.to_ascii_uppercase(), arguments.text(1));
        Self::new(if flavour == Flavour::Redis62 {
            format!("ERR Unknown subcommand or wrong number of arguments for '{subcommand}'. Try {name} HELP.")
        } else {
            format!("ERR unknown subcommand '{subcommand}'. Try {name} HELP.")
        })
    }

    pub(crate) fn expire_time(flavour: Flavour, command: &str) -> Self {
        let quote = if flavour == Flavour::Redis62 { "" } else { "'" };
        let behind = if flavour == Flavour::Redis62 { "" } else { " command" };
        Self::new(format!("ERR invalid expire time in {quote}{command}{quote}{behind}"))
    }

    pub(crate) fn loading(flavour: Flavour) -> Self {
        Self::new(format!("LOADING {} is loading the dataset in memory", flavour.product()))
    }

    pub(crate) fn busy(flavour: Flavour) -> Self {
        let product = flavour.product();
        Self::new(format!("BUSY {product} is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."))
    }

    pub(crate) fn cannot_save(flavour: Flavour) -> Self {
        let product = flavour.product();
        let unable = if flavour == Flavour::Redis62 {
            "it is currently not able to persist on disk"
        } else {
            "it's currently unable to persist to disk"
        };
        Self::new(format!(
            "MISCONF {product} is configured to save RDB snapshots, but {unable}. Commands that may modify the data set are \
             disabled, because this instance is configured to report errors during writes if RDB snapshotting fails \
             (stop-writes-on-bgsave-error option). Please check the {product} logs for details about the RDB error."
        ))
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        Self::Error(refusal.0)
    }
}
