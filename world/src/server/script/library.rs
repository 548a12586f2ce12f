//! The library `redis`, as scripts find it.

use mlua::{Error, Lua, MultiValue, Result, Table, Value};

use super::call::{OnError, call};
use super::failure::caller_of_command;
use super::running::Shared;
use super::values::field;
use crate::server::arguments::Arguments;
use crate::server::flavour::Flavour;
use crate::server::gate;
use crate::server::table;

/// Returns the library.
pub(crate) fn redis(lua: &Lua, flavour: Flavour, shared: &Shared) -> Result<Table> {
    let redis = lua.create_table()?;
    for (name, on_error) in [("call", OnError::Raise), ("pcall", OnError::Return)] {
        let shared = shared.clone();
        let function = move |lua: &Lua, words: MultiValue| call(lua, &mut shared.lock(), &words, on_error);
        redis.raw_set(name, lua.create_function(function)?)?;
    }
    let error = move |lua: &Lua, words: MultiValue| reply(lua, flavour, "err", &words);
    redis.raw_set("error_reply", lua.create_function(error)?)?;
    let status = move |lua: &Lua, words: MultiValue| reply(lua, flavour, "ok", &words);
    redis.raw_set("status_reply", lua.create_function(status)?)?;
    redis.raw_set("sha1hex", lua.create_function(|_, words: MultiValue| sha1hex(&words))?)?;
    // What a script writes into the log is not kept, and its writes are always replicated one by one.
    redis.raw_set("log", lua.create_function(|_, _: MultiValue| Ok(()))?)?;
    redis.raw_set("replicate_commands", lua.create_function(|_, ()| Ok(true))?)?;
    if flavour > Flavour::Redis62 {
        let shared = shared.clone();
        let may_run = move |_: &Lua, words: MultiValue| may_run(&shared, &words);
        redis.raw_set("acl_check_cmd", lua.create_function(may_run)?)?;
    }
    Ok(redis)
}

/// The name by which a server knows a script.
pub(crate) fn hash(text: &[u8]) -> String {
    sha1_smol::Sha1::from(text).digest().to_string()
}

/// Returns the hash of a text; anything else is empty.
fn sha1hex(words: &MultiValue) -> Result<String> {
    match words.iter().next() {
        Some(word) if words.len() == 1 => {
            Ok(hash(&word.as_string().map(|text| text.as_bytes().to_vec()).unwrap_or_default()))
        }
        _ => Err(Error::runtime("wrong number of arguments")),
    }
}

/// Returns what a script returns as an error or as a status.
fn reply(lua: &Lua, flavour: Flavour, kind: &str, words: &MultiValue) -> Result<Table> {
    match words.iter().next() {
        Some(Value::String(text)) if words.len() == 1 => {
            let text = text.to_string_lossy();
            let text = if kind == "err" { error_text(flavour, &text) } else { text };
            field(lua, kind, text.as_bytes())
        }
        _ => {
            const MISUSE: &str = "wrong number or type of arguments";
            let code = if flavour == Flavour::Redis62 { caller_of_command(lua) } else { "ERR ".to_owned() };
            field(lua, "err", (code + MISUSE).as_bytes())
        }
    }
}

/// Newer servers give an error a code that has none.
fn error_text(flavour: Flavour, text: &str) -> String {
    let bare = text.strip_prefix('-').unwrap_or(text);
    match flavour {
        Flavour::Redis62 => text.to_owned(),
        _ if bare.contains(' ') => bare.to_owned(),
        _ => format!("ERR {bare}"),
    }
}

/// Tells whether the user of the script may run a command.
fn may_run(shared: &Shared, words: &MultiValue) -> Result<bool> {
    let words = words.iter().filter_map(|word| word.as_string().map(|word| word.as_bytes().to_vec()));
    let arguments = Arguments::of(words);
    let running = shared.lock();
    let library = if running.flavour == Flavour::Valkey9 { "server" } else { "redis" };
    let unknown = || Error::runtime(format!("Invalid command passed to {library}.acl_check_cmd()"));
    let command = table::find(arguments.word(0)).ok_or_else(unknown)?;
    Ok(gate::forbidden(&running.state, &running.caller.user, command, &arguments).is_none())
}
