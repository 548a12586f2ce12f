//! Facts about a server. Finding them out changes nothing but keys of its own, which it removes.

pub(super) mod keys;
mod permissions;

use std::collections::HashMap;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{Cmd, RedisResult, Value, cmd, from_redis_value};
use futures_util::future::join_all;
use tallygate_lua as lua;

pub(crate) use self::keys::{KeyScan, Sample};
pub(crate) use self::permissions::{Access, CommandPurpose, Permission};
use super::{Deployment, Redis};
use crate::bounds::shown_word;
use crate::error::BackendError;
use crate::micros;
use crate::store::redis::connection::fault::is_without_scripts;
use crate::store::redis::rehearsal::RehearsedStep;
use crate::store::redis::script::run::{NodeRole, only};
use crate::store::redis::server::Server;
use crate::store::redis::stored::rehearsal_key;
use crate::system::{Instant, unix};

/// The most fields of `INFO` that are read. A server has about 150, and some for each database and replica.
const MOST_FIELDS: usize = 2_000;

const TIMES: usize = 5;

#[derive(Debug)]
pub(crate) struct ServerFacts {
    /// Host and port, or the path of a socket.
    pub(crate) place: String,
    /// The facts, or why the server could not be asked.
    pub(crate) known: Result<ServerInfo, BackendError>,
}

#[derive(Debug)]
pub(crate) struct ServerInfo {
    /// The fields of `INFO`; `None` if the user may not read them.
    pub(crate) info: Option<HashMap<String, String>>,
    /// The configured snapshots; `None` if the user may not read them.
    pub(crate) save: Option<String>,
    pub(crate) times: Times,
    /// Whether the server knows the script; `None` if that cannot be found out.
    pub(crate) script: Option<ScriptState>,
    pub(crate) permissions: Vec<Permission>,
    /// How calls with known outcomes were decided.
    pub(crate) rehearsed: Vec<RehearsedStep>,
    /// Some of the keys with the prefix; `None` if the user may not look for them.
    pub(crate) sample: Option<Sample>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptState {
    Known,
    /// The next call sends the script.
    Unseen,
    /// The server does not run scripts.
    Disabled,
}

/// The time of a server's clock, and how long the server takes to answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// How many microseconds the server is ahead of this machine.
    pub(crate) ahead_us: i64,
    /// By how many microseconds `ahead_us` may be wrong.
    pub(crate) error_us: u64,
    pub(crate) round_trip: Duration,
}

impl Redis {
    pub(crate) async fn inspect(&self) -> Result<Vec<ServerFacts>, BackendError> {
        let until = self.until()?;
        match self.deployment() {
            Deployment::Server(node) => {
                Ok(vec![node.server().inspect(self.setup.deadline, &rehearsal_key(&self.setup.prefix)).await])
            }
            Deployment::Cluster(cluster) => {
                let primaries = cluster.primaries(until).await?;
                let keys =
                    cluster.keys_of(&primaries.iter().map(|primary| (Arc::clone(primary), 0)).collect::<Vec<_>>());
                let inspected = primaries.iter().zip(keys).map(|(primary, key)| async {
                    let key = key.unwrap_or_else(|| rehearsal_key(&self.setup.prefix));
                    primary.node.server().inspect(self.setup.deadline, &key).await
                });
                Ok(join_all(inspected).await)
            }
        }
    }
}

impl Server {
    /// Finds out about this server. Each answer may take as long as a decision.
    async fn inspect(&self, deadline: Duration, key: &str) -> ServerFacts {
        ServerFacts { place: self.connector.whereabouts().await, known: self.known(deadline, key).await }
    }

    async fn known(&self, deadline: Duration, key: &str) -> Result<ServerInfo, BackendError> {
        Ok(ServerInfo {
            info: self.try_one(&cmd("INFO"), deadline).await?.ok().as_ref().map(fields),
            save: self.save(deadline).await?,
            times: self.times(deadline).await?,
            script: self.script_state(deadline).await?,
            permissions: permissions::of(self, deadline).await?,
            rehearsed: self.rehearse_each(key, deadline).await,
            sample: keys::sample(self, deadline).await?,
        })
    }

    /// Sends a command whose refusal is also an answer.
    async fn try_one(&self, command: &Cmd, deadline: Duration) -> Result<RedisResult<Value>, BackendError> {
        self.try_each(iter::once(command.clone()), deadline).await.map(only)
    }

    /// Sends commands whose refusals are also answers.
    async fn try_each(
        &self,
        commands: impl Iterator<Item = Cmd>,
        deadline: Duration,
    ) -> Result<Vec<RedisResult<Value>>, BackendError> {
        self.connector
            .ask(Instant::now() + deadline, async |connection| NodeRole::Owner.send(connection, commands).await)
            .await
    }

    async fn save(&self, deadline: Duration) -> Result<Option<String>, BackendError> {
        let mut command = cmd("CONFIG");
        command.arg("GET").arg("save");
        let answer = self.try_one(&command, deadline).await?;
        let settings = answer.ok().and_then(|answer| from_redis_value::<HashMap<String, String>>(answer).ok());
        Ok(settings.and_then(|mut settings| settings.remove("save")).map(|save| shown_word(&save).into_owned()))
    }

    /// Asks for the time several times. The fastest answer gives the smallest error.
    async fn times(&self, deadline: Duration) -> Result<Times, BackendError> {
        let mut answers = Vec::with_capacity(TIMES);
        for _ in 0..TIMES {
            let (asked, asked_us) = (Instant::now(), now_us());
            let (seconds, micros): (u64, u64) =
                self.query(&cmd("TIME"), Instant::now() + deadline, NodeRole::Owner).await?;
            let round_trip = asked.elapsed();
            let server_us = seconds.saturating_mul(1_000_000).saturating_add(micros);
            let half_us = micros::from_duration(round_trip / 2);
            let ahead_us = server_us.cast_signed().saturating_sub((asked_us + half_us).cast_signed());
            answers.push(Times { ahead_us, error_us: half_us + 1, round_trip });
        }
        answers.sort_by_key(|answer| answer.round_trip);
        let median = answers.get(answers.len() / 2).map(|answer| answer.round_trip);
        let fastest = answers.first().zip(median).map(|(fastest, round_trip)| Times { round_trip, ..*fastest });
        fastest.ok_or_else(|| BackendError::away("redis: the server tells no time"))
    }

    /// Finds out whether the server knows the script, by a call without a protocol version, which the script refuses.
    async fn script_state(&self, deadline: Duration) -> Result<Option<ScriptState>, BackendError> {
        let mut command = cmd("EVALSHA");
        command.arg(&self.scripts.decide().sha1).arg(0).arg("none");
        Ok(match self.try_one(&command, deadline).await? {
            Err(error) if error.kind() == ::redis::ServerErrorKind::NoScript.into() => {
                Some(if self.is_without_scripts(deadline).await? { ScriptState::Disabled } else { ScriptState::Unseen })
            }
            Err(error) if error.to_string().contains(&format!("protocol {}", lua::PROTOCOL)) => {
                Some(ScriptState::Known)
            }
            _ => None,
        })
    }

    /// Finds out whether the server runs no scripts, by a text that no server can compile.
    async fn is_without_scripts(&self, deadline: Duration) -> Result<bool, BackendError> {
        let mut command = cmd("EVAL");
        command.arg("=").arg(0);
        Ok(self.try_one(&command, deadline).await?.is_err_and(|error| is_without_scripts(&error)))
    }
}

fn fields(info: &Value) -> HashMap<String, String> {
    let text: String = from_redis_value(info.clone()).unwrap_or_default();
    let shown = |text: &str| shown_word(text.trim()).into_owned();
    let field = |line: &str| line.split_once(':').map(|(name, value)| (shown(name), shown(value)));
    text.lines().filter_map(field).take(MOST_FIELDS).collect()
}

fn now_us() -> u64 {
    micros::from_duration(unix())
}
