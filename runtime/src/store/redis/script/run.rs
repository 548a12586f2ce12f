//! How scripts and other commands are sent to a server.

use std::iter;

use ::redis::aio::MultiplexedConnection;
use ::redis::{Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, ServerErrorKind};
use tallygate_lua as lua;

use super::keys::ScriptKeys;
use crate::call::TallyKey;
use crate::clock::Clock;
use crate::observe::opaque_debug;

/// The most arguments of a command beside keys and the arguments of its script, and about as many bytes as they have.
const FEW_ARGUMENTS: usize = 5;
const FEW_BYTES: usize = 32;

/// About as many bytes as a key has.
const KEY_BYTES: usize = 64;

/// A script, and the name by which a server knows it.
pub(crate) struct Script {
    text: String,
    pub(crate) sha1: String,
    clock: Clock,
    /// Whether its first argument is the version of the protocol.
    is_versioned: bool,
}

// Shows the name, because the text is long.
opaque_debug!(Script { sha1 });

/// A call of a script on keys in one slot.
#[derive(Clone)]
pub(crate) struct ScriptCall<'a> {
    pub(crate) script: &'a Script,
    pub(crate) keys: Vec<TallyKey>,
    pub(crate) arguments: Vec<Vec<u8>>,
}

impl Script {
    pub(crate) fn new(text: &str, clock: Clock) -> Self {
        let text = timed(text, &clock);
        let sha1 = ::redis::Script::new(&text).get_hash().to_owned();
        Self { text, sha1, clock, is_versioned: true }
    }

    /// Returns a script without a version: its text depends on the question, and so does its name.
    pub(crate) fn unversioned(text: &str, clock: Clock) -> Self {
        Self { is_versioned: false, ..Self::new(text, clock) }
    }

    /// Runs the script in one round trip, or in two if the server does not know it yet.
    pub(crate) async fn run(
        &self,
        connection: &mut MultiplexedConnection,
        role: NodeRole,
        keys: ScriptKeys<'_>,
        arguments: &[Vec<u8>],
    ) -> Result<Vec<u8>, RedisError> {
        let by_name = self.command("EVALSHA", &self.sha1, keys, arguments);
        match role.send_one(connection, &by_name).await {
            // Nothing was executed, so a second attempt counts nothing twice. `EVAL` also makes the server remember the
            // script.
            Err(error) if is_unknown(&error) => {
                let by_text = self.command("EVAL", &self.text, keys, arguments);
                role.send_one(connection, &by_text).await
            }
            answer => answer,
        }
    }

    fn command(&self, name: &str, script: &str, keys: ScriptKeys<'_>, arguments: &[Vec<u8>]) -> Cmd {
        let number = keys.number();
        let bytes = script.len() + KEY_BYTES * number + arguments.iter().map(Vec::len).sum::<usize>();
        // With room for all of it, which is not moved while it grows.
        let mut command = Cmd::with_capacity(FEW_ARGUMENTS + number + arguments.len(), FEW_BYTES + bytes);
        command.arg(name).arg(script).arg(number);
        keys.add_to(&mut command);
        if self.is_versioned {
            command.arg(lua::PROTOCOL);
        }
        command.arg(arguments);
        if let Some(us) = self.clock.manual_us() {
            command.arg(us);
        }
        command
    }
}

/// Makes several calls in one round trip, or in two if the server does not know a script yet. Each has an answer of its
/// own.
pub(crate) async fn run_each(
    connection: &mut MultiplexedConnection,
    calls: &[ScriptCall<'_>],
    role: NodeRole,
) -> RedisResult<Vec<RedisResult<Vec<u8>>>> {
    let by_name = |call: &ScriptCall<'_>| call.command("EVALSHA", &call.script.sha1);
    let mut answers = role.send(connection, calls.iter().map(by_name)).await?;
    let is_unknown = |answer: &RedisResult<_>| answer.as_ref().is_err_and(is_unknown);
    let unknown = calls.iter().zip(&answers).filter(|(_, answer)| is_unknown(answer));
    let by_text: Vec<_> = unknown.map(|(call, _)| call.by_text()).collect();
    if !by_text.is_empty() {
        let again = role.send(connection, by_text.into_iter()).await?;
        answers.iter_mut().filter(|answer| is_unknown(answer)).zip(again).for_each(|(old, new)| *old = new);
    }
    Ok(answers)
}

impl ScriptCall<'_> {
    /// Returns the command that sends the text of the script.
    pub(crate) fn by_text(&self) -> Cmd {
        self.command("EVAL", &self.script.text)
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        self.script.command(name, script, ScriptKeys::Written(&self.keys), &self.arguments)
    }
}

fn is_unknown(error: &RedisError) -> bool {
    error.kind() == ServerErrorKind::NoScript.into()
}

/// The role of a node for the slot of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeRole {
    /// The node serves the slot, as far as this process knows.
    Owner,
    /// The slot moves to the node from the owner, which has redirected the request. The node has the keys that the
    /// owner lacks.
    Importer,
}

impl NodeRole {
    /// Sends commands in one round trip. Each has an answer of its own.
    pub(crate) async fn send<T: FromRedisValue>(
        self,
        connection: &mut MultiplexedConnection,
        commands: impl Iterator<Item = Cmd>,
    ) -> RedisResult<Vec<RedisResult<T>>> {
        let mut pipeline = ::redis::pipe();
        pipeline.ignore_errors();
        for command in commands {
            if self == Self::Importer {
                // `ASKING` is valid for one command.
                pipeline.cmd("ASKING").ignore();
            }
            pipeline.add_command(command);
        }
        pipeline.query_async(connection).await
    }

    pub(crate) async fn send_one<T: FromRedisValue>(
        self,
        connection: &mut MultiplexedConnection,
        command: &Cmd,
    ) -> RedisResult<T> {
        match self {
            Self::Owner => command.query_async(connection).await,
            // Boxed, as it is rare.
            Self::Importer => only(Box::pin(self.send(connection, iter::once(command.clone()))).await?),
        }
    }
}

/// Returns the answer to the only command that was sent.
pub(crate) fn only<T>(mut answers: Vec<RedisResult<T>>) -> RedisResult<T> {
    let missing = || RedisError::from((ErrorKind::UnexpectedReturnType, "a command has no answer"));
    answers.pop().unwrap_or_else(|| Err(missing()))
}

/// Returns the text for the clock of the server, or for that of a test.
#[cfg(feature = "testing")]
pub(crate) fn timed(text: &str, clock: &Clock) -> String {
    if clock.manual_us().is_some() { lua::at_callers_time(text) } else { text.to_owned() }
}

#[cfg(not(feature = "testing"))]
pub(crate) fn timed(text: &str, _clock: &Clock) -> String {
    text.to_owned()
}
