//! The scripts that a server has seen, and how one runs.

use std::collections::BTreeMap;

use mlua::{ChunkMode, Function, HookTriggers, Lua, LuaOptions, Result, StdLib, Table, Value, VmState};

use super::failure::{CHUNK, answer, describe, one_line};
use super::library::{self, hash};
use super::running::Shared;
use super::struct_library;
use super::values::into_reply;
use crate::server::arguments::Arguments;
use crate::server::command::ScriptCommand;
use crate::server::flavour::Flavour;
use crate::server::gate::Caller;
use crate::server::numbers::integer;
use crate::server::refusal::{Answer, NO_INTEGER, Refusal};
use crate::server::reply::Reply;
use crate::server::state::State;

/// Runs a function, and turns an error into an answer while the stack still shows where it happened.
const RUNNER: &str = "local try, handle = xpcall, ... return function(script) return try(script, handle) end";

/// What a script ends with that runs on.
pub(crate) const OVERRUN: &str = "the script runs on";

/// How many instructions of Lua a script may take: several times as many as the longest one.
const MOST_STEPS: u32 = 100;
const STEP: u32 = 100_000;

/// The scripts of a server.
#[derive(Debug)]
pub(crate) struct Scripts {
    lua: Lua,
    flavour: Flavour,
    shared: Shared,
    runner: Function,
    /// By their hashes.
    known: BTreeMap<String, Function>,
}

impl Scripts {
    pub(crate) fn new(flavour: Flavour) -> Result<Self> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new())?;
        let shared = Shared::new(flavour);
        let globals = lua.globals();
        let redis = library::redis(&lua, flavour, &shared)?;
        if flavour == Flavour::Valkey9 {
            globals.raw_set("server", &redis)?;
        }
        globals.raw_set("redis", redis)?;
        globals.raw_set("struct", struct_library::library(&lua)?)?;
        globals.raw_set("KEYS", lua.create_table()?)?;
        globals.raw_set("ARGV", lua.create_table()?)?;
        let creates = match flavour {
            Flavour::Redis62 => "Script attempted to create global variable '%s'",
            Flavour::Redis70 | Flavour::Valkey9 => "Attempt to modify a readonly table",
        };
        let described = lua.create_function(|lua, error: Value| lua.create_string(describe(&error).0))?;
        let prelude = lua.load(include_str!("prelude.lua")).set_name("@enable_strict_lua");
        prelude.call::<()>((creates, described))?;
        let handler = {
            let shared = shared.clone();
            lua.create_function(move |lua, error: Value| Ok(answer(lua, flavour, &shared.lock().sha1, &error)))?
        };
        let runner = lua.load(RUNNER).call(handler)?;
        let watched = shared.clone();
        lua.set_hook(HookTriggers::new().every_nth_instruction(STEP), move |_, _| {
            let steps = &mut watched.lock().steps;
            *steps += 1;
            if *steps < MOST_STEPS { Ok(VmState::Continue) } else { Err(mlua::Error::runtime(OVERRUN)) }
        })?;
        Ok(Self { lua, flavour, shared, runner, known: BTreeMap::new() })
    }

    /// Forgets all scripts, as a server that starts again does.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Tells whether a script was seen.
    pub(crate) fn know(&self, sha1: &[u8]) -> bool {
        self.known.contains_key(&String::from_utf8_lossy(sha1).to_ascii_lowercase())
    }

    /// Runs a command about scripts.
    pub(crate) fn run(
        &mut self,
        command: ScriptCommand,
        state: &mut Box<State>,
        caller: Caller,
        arguments: &Arguments,
    ) -> Answer {
        match command {
            ScriptCommand::Script => self.administer(state, arguments),
            ScriptCommand::Eval => {
                let text = arguments.word(1);
                let sha1 = hash(text);
                let keys = count_keys(arguments)?;
                let script = self.compiled(&sha1, text)?;
                self.evaluate(&script, sha1, state, caller, arguments, keys)
            }
            ScriptCommand::EvalSha => {
                let keys = count_keys(arguments)?;
                let sha1 = arguments.text(1).to_ascii_lowercase();
                let script = self.known.get(&sha1).cloned().ok_or_else(|| unknown(self.flavour))?;
                self.evaluate(&script, sha1, state, caller, arguments, keys)
            }
        }
    }

    fn administer(&mut self, state: &mut State, arguments: &Arguments) -> Answer {
        match arguments.text(1).to_ascii_lowercase().as_str() {
            "load" => {
                let sha1 = hash(arguments.word(2));
                self.compiled(&sha1, arguments.word(2))?;
                if self.flavour == Flavour::Redis62 {
                    state.stream.record(state.selected, arguments);
                }
                Ok(Reply::text(sha1))
            }
            "exists" => Ok(Reply::array(arguments.from(2).map(|sha1| Reply::flag(self.know(sha1))))),
            "flush"
                if arguments.len() > 3
                    || arguments.len() == 3 && !arguments.is(2, "sync") && !arguments.is(2, "async") =>
            {
                Err(Refusal::known("ERR SCRIPT FLUSH only support SYNC|ASYNC option"))
            }
            "flush" => {
                self.forget();
                Ok(Reply::OK)
            }
            _ if state.faults.is_busy => {
                state.faults.is_busy = false;
                Ok(Reply::OK)
            }
            _ => Err(Refusal::known("NOTBUSY No scripts in execution right now.")),
        }
    }

    /// Compiles a script once.
    fn compiled(&mut self, sha1: &str, text: &[u8]) -> std::result::Result<Function, Refusal> {
        if let Some(known) = self.known.get(sha1) {
            return Ok(known.clone());
        }
        let chunk = |text| self.lua.load(text).set_name(CHUNK).set_mode(ChunkMode::Text);
        // As the servers do, so that an error names the same line.
        let script = match self.flavour {
            Flavour::Redis62 => chunk([b"return function() ", text, b"\nend"].concat()).eval::<Function>(),
            Flavour::Redis70 | Flavour::Valkey9 => chunk(text.to_vec()).into_function(),
        };
        let script = script.map_err(|error| {
            let text = match error {
                mlua::Error::SyntaxError { message, .. } => message,
                other => other.to_string(),
            };
            Refusal::new(format!("ERR Error compiling script (new function): {}", one_line(&text)))
        })?;
        self.known.insert(sha1.to_owned(), script.clone());
        Ok(script)
    }

    fn evaluate(
        &mut self,
        script: &Function,
        sha1: String,
        state: &mut Box<State>,
        caller: Caller,
        arguments: &Arguments,
        keys: usize,
    ) -> Answer {
        let set = self.set_arguments(arguments, keys);
        let evaluated = set.and_then(|()| {
            {
                let mut running = self.shared.lock();
                running.caller = caller;
                running.sha1 = sha1;
                running.has_written = false;
                running.steps = 0;
                running.was_full = state.is_out_of_memory();
                std::mem::swap(&mut running.state, state);
            }
            let outcome = self.runner.call::<(bool, Value)>(script);
            std::mem::swap(&mut self.shared.lock().state, state);
            outcome
        });
        match evaluated {
            Ok((true, value)) => into_reply(self.flavour, &value, 0).map_err(|error| broken(&error)),
            Ok((false, error)) => Err(Refusal::new(error.to_string().unwrap_or_default())),
            Err(error) => Err(broken(&error)),
        }
    }

    fn set_arguments(&self, arguments: &Arguments, keys: usize) -> Result<()> {
        let globals = self.lua.globals();
        let table = |words: std::ops::Range<usize>| -> Result<Table> {
            let table = self.lua.create_table_with_capacity(words.len(), 0)?;
            for index in words {
                table.raw_push(self.lua.create_string(arguments.word(index))?)?;
            }
            Ok(table)
        };
        globals.raw_set("KEYS", table(3..3 + keys)?)?;
        globals.raw_set("ARGV", table(3 + keys..arguments.len())?)
    }
}

/// What Lua itself cannot do, like to allocate memory.
fn broken(error: &mlua::Error) -> Refusal {
    Refusal::new(one_line(&format!("ERR {error}")))
}

fn unknown(flavour: Flavour) -> Refusal {
    Refusal::known(if flavour == Flavour::Valkey9 {
        "NOSCRIPT No matching script."
    } else {
        "NOSCRIPT No matching script. Please use EVAL."
    })
}

fn count_keys(arguments: &Arguments) -> std::result::Result<usize, Refusal> {
    let keys = integer(arguments.word(2)).ok_or(NO_INTEGER)?;
    let keys = usize::try_from(keys).map_err(|_| Refusal::known("ERR Number of keys can't be negative"))?;
    if keys > arguments.len() - 3 {
        return Err(Refusal::known("ERR Number of keys can't be greater than number of args"));
    }
    Ok(keys)
}
