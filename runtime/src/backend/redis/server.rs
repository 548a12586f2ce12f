//! The server: a connection, the script, and what is known of its clock.

use std::sync::atomic::{AtomicI64, Ordering};

use ::redis::{Cmd, FromRedisValue, RedisError};
use tokio::time::{Instant, timeout_at};

use super::connect::{self, Connector, Link};
use super::wire::{self, Reply, Script};
use crate::backend::Request;
use crate::clock::Clock;
use crate::{Error, Outage};

/// A Redis server that knows the script.
#[derive(Debug)]
pub(super) struct Server {
    connector: Connector,
    script: Script,
    clock: Clock,
    /// How far the server's clock is ahead of this process's, in microseconds, when it last said so.
    ahead_us: AtomicI64,
}

impl Server {
    pub(super) fn new(url: &str, clock: Clock) -> Result<Self, Error> {
        let script = Script::new(clock.clone());
        Ok(Self { connector: Connector::new(url)?, script, clock, ahead_us: AtomicI64::new(0) })
    }

    pub(super) async fn reach(&self) -> Result<(), Outage> {
        self.connector.link().await.map(drop)
    }

    /// Asks several requests in one call. Each is decided by itself, in their order.
    pub(super) async fn ask(&self, requests: &[Request<'_>], until: Instant) -> Result<Vec<Reply>, Outage> {
        let asked = Instant::now();
        let mut link = timeout_at(until, self.connector.link()).await.map_err(|_| late())??;
        let Ok(answer) = timeout_at(until, self.script.run(link.connection(), requests, self.now_us())).await else {
            self.connector.suspect(&link, asked);
            return Err(late());
        };
        link.heard();
        let values = answer.map_err(|error| self.blame(&link, &error))?;
        self.learn_time(&values);
        wire::read_replies(&values, requests)
            .ok_or_else(|| Outage::new("redis: the script's reply has an unknown shape"))
    }

    /// Sends one command beside the script.
    pub(super) async fn query<T: FromRedisValue>(&self, command: &Cmd, until: Instant) -> Result<T, Outage> {
        let asked = Instant::now();
        let mut link = timeout_at(until, self.connector.link()).await.map_err(|_| late())??;
        let Ok(answer) = timeout_at(until, command.query_async(link.connection())).await else {
            self.connector.suspect(&link, asked);
            return Err(late());
        };
        link.heard();
        answer.map_err(|error| self.blame(&link, &error))
    }

    /// Drops the connection where the error says that it leads nowhere, or to a server that may not write.
    fn blame(&self, link: &Link, error: &RedisError) -> Outage {
        if error.is_unrecoverable_error() || error.code() == Some("READONLY") {
            self.connector.discard(link);
        }
        connect::outage(error)
    }

    /// The server's time, as well as this process knows it.
    fn now_us(&self) -> u64 {
        self.clock.now_us().saturating_add_signed(self.ahead_us.load(Ordering::Relaxed))
    }

    fn learn_time(&self, values: &[i64]) {
        if let Some(server_us) = wire::server_us(values) {
            let ahead_us = server_us.cast_signed().wrapping_sub(self.clock.now_us().cast_signed());
            self.ahead_us.store(ahead_us, Ordering::Relaxed);
        }
    }
}

fn late() -> Outage {
    Outage::new("redis: no answer within the deadline")
}
