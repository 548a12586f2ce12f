//! `redis.call` and `redis.pcall`.

use mlua::{Error, Lua, MultiValue, Result, Value};

use super::failure::{Raised, caller_of_command};
use super::running::Running;
use super::values::{field, into_lua};
use crate::server::arguments::Arguments;
use crate::server::command::{Command, GROWS, NOT_IN_SCRIPTS, Run, WRITES};
use crate::server::dispatch;
use crate::server::flavour::Flavour;
use crate::server::gate::{self, Forbidden};
use crate::server::numbers::precise;
use crate::server::refusal::{OUT_OF_MEMORY, READ_ONLY, Refusal, TOO_FEW_REPLICAS};
use crate::server::reply::Reply;
use crate::server::table;

/// What becomes of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnError {
    /// The script fails.
    Raise,
    /// The script sees it.
    Return,
}

/// Calls a command for a script.
pub(crate) fn call(lua: &Lua, running: &mut Running, words: &MultiValue, on_error: OnError) -> Result<Value> {
    let error = match perform(running, words) {
        Ok(Reply::Error(text)) => text.into_owned(),
        Ok(reply) => return into_lua(lua, reply),
        Err(complaint) => complaint.text(lua, running.flavour),
    };
    match on_error {
        OnError::Raise => Err(Error::external(Raised(error))),
        OnError::Return => Ok(Value::Table(field(lua, "err", error.as_bytes())?)),
    }
}

/// Why a command does not run.
enum Complaint {
    /// In the words of Redis 6.2, 7.0 and Valkey, without a code.
    Misuse([&'static str; 3]),
    /// In the words of this server.
    Forbidden(String),
    /// As a client would be told.
    Unable(Refusal),
}

impl Complaint {
    fn text(self, lua: &Lua, flavour: Flavour) -> String {
        let is_old = flavour == Flavour::Redis62;
        let text = match self {
            Self::Misuse(texts) => texts[flavour as usize].to_owned(),
            Self::Forbidden(text) => text,
            Self::Unable(refusal) if is_old => format!("-{}", refusal.0),
            Self::Unable(refusal) => return refusal.0.into_owned(),
        };
        if is_old { caller_of_command(lua) + &text } else { format!("ERR {text}") }
    }
}

fn perform(running: &mut Running, words: &MultiValue) -> std::result::Result<Reply, Complaint> {
    let mut arguments = std::mem::take(&mut running.arguments);
    arguments.clear();
    let performed = read(running.flavour, words, &mut arguments).and_then(|()| execute(running, &arguments));
    running.arguments = arguments;
    performed
}

fn read(flavour: Flavour, words: &MultiValue, arguments: &mut Arguments) -> std::result::Result<(), Complaint> {
    if words.is_empty() {
        return Err(Complaint::Misuse([
            "Please specify at least one argument for redis.call()",
            "Please specify at least one argument for this redis lib call",
            "Please specify at least one argument for this call",
        ]));
    }
    for word in words {
        match word {
            Value::String(text) => arguments.push(&text.as_bytes()),
            #[allow(clippy::cast_precision_loss, reason = "a number of Lua 5.1 is no integer")]
            Value::Integer(number) => arguments.push(precise(flavour, *number as f64).as_bytes()),
            Value::Number(number) => arguments.push(precise(flavour, *number).as_bytes()),
            _ => {
                return Err(Complaint::Misuse([
                    "Lua redis() command arguments must be strings or integers",
                    "Lua redis lib command arguments must be strings or integers",
                    "Command arguments must be strings or integers",
                ]));
            }
        }
    }
    Ok(())
}

fn execute(running: &mut Running, arguments: &Arguments) -> std::result::Result<Reply, Complaint> {
    let command = table::find(arguments.word(0)).ok_or(Complaint::Misuse([
        "Unknown Redis command called from Lua script",
        "Unknown Redis command called from script",
        "Unknown command called from script",
    ]))?;
    if !command.takes(arguments.len()) {
        return Err(Complaint::Misuse([
            "Wrong number of args calling Redis command From Lua script",
            "Wrong number of args calling Redis command from script",
            "Wrong number of args calling command from script",
        ]));
    }
    let Run::Data(run) = command.run else { return Err(not_allowed()) };
    if command.has(NOT_IN_SCRIPTS) {
        return Err(not_allowed());
    }
    check_permission(running, command, arguments)?;
    check_health(running, command)?;
    running.has_written |= command.has(WRITES);
    if running.state.cluster.is_some() {
        check_slot(running, command, arguments)?;
    }
    Ok(dispatch::run(&mut running.state, arguments, run))
}

fn not_allowed() -> Complaint {
    Complaint::Misuse([
        "This Redis command is not allowed from scripts",
        "This Redis command is not allowed from script",
        "This Valkey command is not allowed from script",
    ])
}

fn check_permission(running: &Running, command: &Command, arguments: &Arguments) -> std::result::Result<(), Complaint> {
    let user = &running.caller.user;
    let Some(forbidden) = gate::forbidden(&running.state, user, command, arguments) else { return Ok(()) };
    let text = match forbidden {
        _ if running.flavour == Flavour::Valkey9 => {
            format!("ACL failure in script: {}", gate::lack(user, command, arguments, forbidden))
        }
        Forbidden::Command => "The user executing the script can't run this command or subcommand".to_owned(),
        Forbidden::Key => {
            "The user executing the script can't access at least one of the keys mentioned in the command arguments"
                .to_owned()
        }
        Forbidden::Channel => {
            "The user executing the script can't publish to the channel mentioned in the command".to_owned()
        }
    };
    Err(Complaint::Forbidden(text))
}

/// Finds out whether the server is able to run a command. Newer servers do not ask again once a script has written.
fn check_health(running: &Running, command: &Command) -> std::result::Result<(), Complaint> {
    let (state, flavour) = (&running.state, running.flavour);
    let is_old = flavour == Flavour::Redis62;
    if command.has(WRITES) && (is_old || !running.has_written) {
        if state.is_replica() && !state.settings.may_replicas_write {
            return Err(Complaint::Unable(READ_ONLY));
        }
        if state.faults.cannot_save {
            return Err(Complaint::Unable(Refusal::cannot_save(flavour)));
        }
        if !is_old && state.has_too_few_replicas() {
            return Err(Complaint::Unable(TOO_FEW_REPLICAS));
        }
    }
    if command.has(GROWS) && running.was_full && !running.has_written {
        return Err(Complaint::Unable(OUT_OF_MEMORY));
    }
    Ok(())
}

fn check_slot(running: &mut Running, command: &Command, arguments: &Arguments) -> std::result::Result<(), Complaint> {
    gate::route(&mut running.state, &running.caller, command, arguments).map_err(|refusal| {
        let is_down = refusal.0.starts_with("CLUSTERDOWN");
        Complaint::Forbidden(match (running.flavour, is_down) {
            (Flavour::Redis62, true) => {
                "Lua script attempted to execute a command while the cluster is down".to_owned()
            }
            (Flavour::Redis70, true) => "Script attempted to execute a command while the cluster is down".to_owned(),
            (Flavour::Valkey9, true) => {
                format!("Can not execute a command '{}' while the cluster is down", command.name)
            }
            (Flavour::Redis62, false) => "Lua script attempted to access a non local key in a cluster node".to_owned(),
            (Flavour::Redis70, false) => "Script attempted to access a non local key in a cluster node".to_owned(),
            (Flavour::Valkey9, false) => "Attempted to access a non local key in a cluster node".to_owned(),
        })
    })
}
