//! A script, as a server runs it.

use std::fmt;

use ::redis::aio::MultiplexedConnection;
use ::redis::{Cmd, RedisError, ServerErrorKind};
use tallygate_lua as lua;

use crate::clock::Clock;
use crate::store::tally_key::TallyKey;

/// A script, and the name that a server knows it by once it has seen it.
pub(super) struct Script {
    text: String,
    sha1: String,
    clock: Clock,
}

/// Names it, as its text is long.
impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("sha1", &self.sha1).finish_non_exhaustive()
    }
}

impl Script {
    pub(super) fn new(text: &str, clock: Clock) -> Self {
        let text = timed(text, &clock);
        let sha1 = ::redis::Script::new(&text).get_hash().to_owned();
        Self { text, sha1, clock }
    }

    /// Runs the script in one round trip, or in two when the server has not seen it yet.
    pub(super) async fn run(
        &self,
        connection: &mut MultiplexedConnection,
        keys: impl Iterator<Item = TallyKey> + Clone,
        arguments: &[Vec<u8>],
    ) -> Result<Vec<u8>, RedisError> {
        let answer = self.command("EVALSHA", &self.sha1, keys.clone(), arguments).query_async(connection).await;
        match answer {
            // Nothing was executed, so asking again counts nothing twice; EVAL also makes the server remember it.
            Err(error) if RedisError::kind(&error) == ServerErrorKind::NoScript.into() => {
                self.command("EVAL", &self.text, keys, arguments).query_async(connection).await
            }
            answer => answer,
        }
    }

    fn command(
        &self,
        name: &str,
        script: &str,
        keys: impl Iterator<Item = TallyKey> + Clone,
        arguments: &[Vec<u8>],
    ) -> Cmd {
        let mut command = ::redis::cmd(name);
        command.arg(script).arg(keys.clone().count());
        for key in keys {
            command.arg(key.as_str());
        }
        command.arg(lua::PROTOCOL).arg(arguments);
        if let Some(us) = self.clock.manual_us() {
            command.arg(us);
        }
        command
    }
}

#[cfg(feature = "testing")]
fn timed(text: &str, clock: &Clock) -> String {
    if clock.manual_us().is_some() { lua::at_callers_time(text) } else { text.to_owned() }
}

#[cfg(not(feature = "testing"))]
fn timed(text: &str, _clock: &Clock) -> String {
    text.to_owned()
}
