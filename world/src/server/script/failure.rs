//! Errors of scripts, in the words of each server.

use std::fmt;

use mlua::{Error, Lua, Value};

use crate::server::flavour::Flavour;

/// The name of every script in its errors.
pub(crate) const CHUNK: &str = "@user_script";

/// An error that a command has answered.
#[derive(Debug)]
pub(crate) struct Raised(pub(crate) String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

/// Where something happened in a script.
struct Place {
    source: String,
    line: String,
}

impl Place {
    /// Returns the place at a level of the stack.
    fn at(lua: &Lua, level: usize) -> Option<(Self, bool)> {
        lua.inspect_stack(level, |debug| {
            let source = debug.source();
            let line = debug.current_line().map_or("-1".to_owned(), |line| line.to_string());
            let place = Self { source: source.source.unwrap_or_default().into_owned(), line };
            (place, source.what == "C")
        })
    }

    /// Returns the innermost place in a script, or in any Lua.
    fn innermost(lua: &Lua, flavour: Flavour) -> Option<Self> {
        let is_meant = |(place, is_c): &(Self, bool)| {
            if flavour == Flavour::Redis62 { !is_c } else { place.source == CHUNK }
        };
        (1..).map_while(|level| Self::at(lua, level)).find(is_meant).map(|(place, _)| place)
    }
}

/// Returns the caller of a function of the server, as Lua names it in errors.
pub(crate) fn caller(lua: &Lua) -> String {
    let place = Place::at(lua, 1).map(|(place, _)| place).filter(|place| place.source == CHUNK);
    place.map(|place| format!("{}:{}: ", &place.source[1..], place.line)).unwrap_or_default()
}

/// Returns the same as Redis 6.2 does in the errors of `redis.call`.
pub(crate) fn caller_of_command(lua: &Lua) -> String {
    let place = Place::at(lua, 1).map(|(place, _)| place);
    place.map(|place| format!("{}: {}: ", place.source, place.line)).unwrap_or_default()
}

/// The text of an error in Lua, and whether it is that of a command.
pub(crate) fn describe(error: &Value) -> (String, bool) {
    match error {
        Value::Error(error) => described(error),
        Value::Table(table) => match table.raw_get::<Option<mlua::String>>("err") {
            Ok(Some(text)) => (text.to_string_lossy(), true),
            _ => ("(error object is a table value)".to_owned(), false),
        },
        other => (other.to_string().unwrap_or_default(), false),
    }
}

fn described(error: &Error) -> (String, bool) {
    match error {
        Error::CallbackError { cause, .. } => described(cause),
        Error::RuntimeError(text) => (text.clone(), false),
        error => match error.downcast_ref::<Raised>() {
            Some(raised) => (raised.0.clone(), true),
            None => (error.to_string(), false),
        },
    }
}

/// Returns what a client is answered when its script fails with that error, while the stack still shows where.
pub(crate) fn answer(lua: &Lua, flavour: Flavour, sha1: &str, error: &Value) -> String {
    let (text, is_of_command) = describe(error);
    let place = Place::innermost(lua, flavour);
    let text = match flavour {
        Flavour::Redis62 => {
            let place = place.map(|place| format!("{}:{}: ", place.source, place.line)).unwrap_or_default();
            format!("ERR Error running script (call to f_{sha1}): {place}{text}")
        }
        Flavour::Redis70 | Flavour::Valkey9 => {
            let kind = if is_of_command { "" } else { "ERR " };
            let script = if flavour == Flavour::Redis70 { format!("{sha1}, ") } else { String::new() };
            let place = place.map(|place| format!(" script: {script}on {}:{}.", place.source, place.line));
            format!("{kind}{text}{}", place.unwrap_or_default())
        }
    };
    one_line(&text)
}

/// An error is one line.
pub(crate) fn one_line(text: &str) -> String {
    text.trim_end_matches(['\r', '\n']).replace(['\r', '\n'], " ")
}
