//! The server: a connection, the scripts, and what is known of its clock.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use ::redis::aio::MultiplexedConnection;
use ::redis::{Cmd, FromRedisValue, RedisError};
use tallygate_lua as lua;

use super::connect::Connector;
use super::fault::backend_error;
use super::link::Link;
use super::script::Script;
use super::wire::{self, Reply};
use super::{pack, real_time};
use crate::clock::Clock;
use crate::error::{BackendError, Error};
use crate::store::request::Request;
use crate::store::tally_id::TallyId;
use crate::store::tally_key::TallyKey;

/// A Redis server that runs the scripts.
#[derive(Debug)]
pub(super) struct Server {
    connector: Connector,
    decide: Script,
    refund: Script,
    ban: Script,
    /// What all keys begin with.
    prefix: String,
    clock: Clock,
    /// How many microseconds the server's clock was ahead of this process's at the last answer.
    ahead_us: AtomicI64,
}

impl Server {
    pub(super) fn new(url: &str, prefix: &str, clock: Clock) -> Result<Self, Error> {
        let script = |text| Script::new(text, clock.clone());
        Ok(Self {
            connector: Connector::new(url)?,
            decide: script(lua::DECIDE),
            refund: script(lua::REFUND),
            ban: script(lua::BAN),
            prefix: prefix.to_owned(),
            ahead_us: AtomicI64::new(0),
            clock,
        })
    }

    pub(super) async fn reach(&self) -> Result<(), BackendError> {
        self.connector.link().await.map(drop)
    }

    /// Sends several requests in one call. Each is decided on its own, in their order.
    pub(super) async fn ask(&self, requests: &[Request<'_>], until: Instant) -> Result<Vec<Reply>, BackendError> {
        let now_us = self.now_us();
        let packed: Vec<_> = requests.iter().map(|request| pack::request(request, now_us)).collect();
        let keys = requests.iter().flat_map(|request| request.keys(&self.prefix));
        let values = self.run(&self.decide, keys, &packed, until).await?;
        self.learn_time(&values);
        wire::read_replies(&values, requests).ok_or_else(unknown_shape)
    }

    /// Removes the hits of a call that was admitted then, from every rule in which they still count; returns whether there
    /// was one.
    pub(super) async fn refund(
        &self,
        request: Request<'_>,
        admitted_us: u64,
        until: Instant,
    ) -> Result<bool, BackendError> {
        // The first answer has the server's time, by which the second has the right ticks.
        for _ in 0..2 {
            let arguments = [pack::request(&request, self.now_us()), admitted_us.to_string().into()];
            let values = self.run(&self.refund, request.keys(&self.prefix), &arguments, until).await?;
            self.learn_time(&values);
            match values[..] {
                [_, lua::STALE_TICKS] => {}
                [_, given] => return Ok(given > 0),
                _ => return Err(unknown_shape()),
            }
        }
        Err(BackendError::new("redis: the server's clock is not where it was a moment ago"))
    }

    /// Bans a subject for that long, or ends its ban.
    pub(super) async fn ban(&self, id: TallyId<'_>, duration_us: u64, until: Instant) -> Result<(), BackendError> {
        let TallyId { group, .. } = id;
        let key = id.key(&self.prefix);
        let ttl_ms = pack::ttl_ms(group.longest_us.max(duration_us));
        let numbers = [group.celled.len() as u64, pack::denials(group) as u64, duration_us, ttl_ms];
        let arguments = numbers.map(|number| number.to_string().into());
        self.run(&self.ban, std::iter::once(key), &arguments, until).await.map(drop)
    }

    /// Removes the tallies of such a call.
    pub(super) async fn reset(&self, request: Request<'_>, until: Instant) -> Result<(), BackendError> {
        let mut command = ::redis::cmd("UNLINK");
        for key in request.keys(&self.prefix) {
            command.arg(key.as_str());
        }
        self.query::<i64>(&command, until).await.map(drop)
    }

    async fn run(
        &self,
        script: &Script,
        keys: impl Iterator<Item = TallyKey> + Clone,
        arguments: &[Vec<u8>],
        until: Instant,
    ) -> Result<Vec<i64>, BackendError> {
        let reply =
            self.answer(until, async |connection| script.run(connection, keys.clone(), arguments).await).await?;
        wire::integers(&reply).ok_or_else(unknown_shape)
    }

    /// Asks over the connection, and drops the connection if that shows it to be of no use.
    pub(super) async fn answer<T>(
        &self,
        until: Instant,
        ask: impl AsyncFnOnce(&mut MultiplexedConnection) -> Result<T, RedisError>,
    ) -> Result<T, BackendError> {
        let asked = Instant::now();
        let mut link = real_time::wait_until(until, self.connector.link()).await.ok_or_else(late)??;
        let Some(answer) = real_time::wait_until(until, ask(link.connection())).await else {
            let error = late();
            self.connector.suspect(&link, asked, &error);
            return Err(error);
        };
        answer.inspect(|_| self.connector.record_answer(&link)).map_err(|error| self.blame(&link, &error))
    }

    /// Sends a command that is no script.
    pub(super) async fn query<T: FromRedisValue>(&self, command: &Cmd, until: Instant) -> Result<T, BackendError> {
        self.answer(until, async |connection| command.query_async(connection).await).await
    }

    /// Drops the connection where the error says that it is broken, or that its server may not write.
    fn blame(&self, link: &Link, error: &RedisError) -> BackendError {
        let reason = backend_error(error);
        if error.is_unrecoverable_error() || is_read_only(error) {
            self.connector.discard(link, &reason);
        } else {
            self.connector.record_answer(link);
        }
        reason
    }

    /// Asks the server for its time.
    pub(super) async fn refresh_time(&self, until: Instant) -> Result<(), BackendError> {
        // A test's clock decides in place of the server's.
        if self.clock.manual_us().is_some() {
            return Ok(());
        }
        let (seconds, micros): (u64, u64) = self.query(&::redis::cmd("TIME"), until).await?;
        self.note_time(seconds.saturating_mul(1_000_000).saturating_add(micros));
        Ok(())
    }

    /// The server's time, as well as this process knows it.
    pub(super) fn now_us(&self) -> u64 {
        self.clock.now_us().saturating_add_signed(self.ahead_us.load(Ordering::Relaxed))
    }

    fn learn_time(&self, values: &[i64]) {
        // The server decides by the time of a manual clock, so it is never ahead of it.
        if let Some(server_us) = wire::server_us(values).filter(|_| self.clock.manual_us().is_none()) {
            self.note_time(server_us);
        }
    }

    fn note_time(&self, server_us: u64) {
        let ahead_us = server_us.cast_signed().wrapping_sub(self.clock.now_us().cast_signed());
        self.ahead_us.store(ahead_us, Ordering::Relaxed);
    }
}

/// Whether the server has become a replica. Redis 6 reports that within an error of the script.
fn is_read_only(error: &RedisError) -> bool {
    error.code() == Some("READONLY") || error.detail().is_some_and(|detail| detail.contains("-READONLY"))
}

fn unknown_shape() -> BackendError {
    BackendError::new("redis: the script's reply has an unknown shape")
}

pub(super) fn late() -> BackendError {
    BackendError::new("redis: no answer within the deadline")
}
