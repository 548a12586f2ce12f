//! How scripts and other commands are sent to a server.

use std::io::Write as _;
use std::iter;

use ::redis::aio::MultiplexedConnection;
use ::redis::{Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, RedisWrite as _, ServerErrorKind};
use tallygate_lua as lua;

use crate::call::{Call, TallyId, TallyKey};
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

/// The keys of a call of a script by what they are of, with the prefix of the limiter. A command writes them into its own
/// buffer: a key is large, and would be moved.
#[derive(Clone, Copy)]
pub(crate) enum ScriptKeys<'a> {
    /// The tallies of requests and, behind them as paused.lua says, the pauses that the script looks for.
    Requests(&'a str, &'a [Call<'a>]),
    /// The tallies of a call.
    Tallies(&'a str, &'a Call<'a>),
    /// A tally, or a pause.
    One(&'a str, TallyId<'a>),
    Written(&'a [TallyKey]),
}

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

impl ScriptKeys<'_> {
    fn number(self) -> usize {
        match self {
            Self::Requests(_, requests) => {
                let of = |request: &Call<'_>| request.tally_ids().count() + usize::from(request.pause().is_some());
                requests.iter().map(of).sum()
            }
            Self::Tallies(_, call) => call.tally_ids().count(),
            Self::One(..) => 1,
            Self::Written(keys) => keys.len(),
        }
    }

    /// Adds the keys to the arguments of a command.
    fn add_to(self, command: &mut Cmd) {
        match self {
            Self::Requests(prefix, requests) => {
                let tallies = requests.iter().flat_map(|request| request.tally_ids());
                tallies.for_each(|id| add(command, prefix, id));
                let pauses = requests.iter().filter_map(|request| request.pause());
                pauses.for_each(|id| add(command, prefix, id));
            }
            Self::Tallies(prefix, call) => call.tally_ids().for_each(|id| add(command, prefix, id)),
            Self::One(prefix, id) => add(command, prefix, id),
            Self::Written(keys) => keys.iter().for_each(|key| _ = command.arg(key.as_str())),
        }
    }
}

fn add(command: &mut Cmd, prefix: &str, id: TallyId<'_>) {
    id.joined(prefix, |parts| {
        let mut argument = command.writer_for_next_arg();
        // Writing to memory cannot fail.
        for part in parts {
            _ = argument.write_all(part.as_bytes());
        }
    });
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ::redis::Arg;
    use tallygate_rules::Rule;

    use super::*;
    use crate::call::CallOptions;
    use crate::policy::Policy;
    use crate::subject::Subject;

    const MINUTE: Duration = Duration::from_secs(60);

    fn added(keys: ScriptKeys<'_>) -> Vec<String> {
        let mut command = Cmd::new();
        keys.add_to(&mut command);
        assert_eq!(keys.number(), command.args_iter().count());
        let text = |argument: Arg<&[u8]>| match argument {
            Arg::Simple(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            _ => panic!("it is no key"),
        };
        command.args_iter().map(text).collect()
    }

    #[test]
    fn a_command_has_the_keys_of_all_tallies_and_then_of_the_pauses() {
        let rules = [Rule::sliding_window(9, MINUTE), Rule::sliding_window(9, MINUTE).counting("tokens")];
        let policy = Policy::builder("p").rules(rules).longest_pause(MINUTE).build().unwrap();
        let subjects = ["a", "{a}b", "a}b"].map(|text| [Subject::of(text).key(), Subject::of(text).key()]);
        let requests: Vec<_> =
            subjects.iter().map(|subjects| Call::new(&policy, subjects, CallOptions::PLAIN)).collect();
        let tallies: Vec<_> = requests.iter().flat_map(|request| request.keys("t")).collect();
        let pauses = requests.iter().filter_map(|request| Some(request.pause()?.key("t")));
        let all: Vec<_> = tallies.iter().copied().chain(pauses).collect();
        assert_eq!(all.len(), 9);
        assert_eq!(added(ScriptKeys::Requests("t", &requests)), added(ScriptKeys::Written(&all)));
        assert_eq!(added(ScriptKeys::Tallies("t", &requests[0])), added(ScriptKeys::Written(&tallies[..2])));
        let first = requests[0].tally_ids().next().unwrap();
        assert_eq!(added(ScriptKeys::One("t", first)), [tallies[0].as_str()]);
    }
}
