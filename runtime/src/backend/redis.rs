//! Tallies in Redis, decided by the shared script in one round trip.

mod connect;
mod wire;

use std::time::Duration;

use ::redis::RedisError;
use tokio::time::{Instant, timeout_at};

use self::connect::{Connector, Link};
use self::wire::Script;
use super::{Reply, Request};
use crate::{Error, Outage};

/// Tallies in Redis.
#[derive(Debug)]
pub(crate) struct Redis {
    connector: Connector,
    script: Script,
    deadline: Duration,
}

impl Redis {
    pub(crate) fn new(url: &str, deadline: Duration) -> Result<Self, Error> {
        Ok(Self { connector: Connector::new(url)?, script: Script::new(), deadline })
    }

    /// Connects, so that a wrong set-up is found at start-up.
    pub(crate) async fn reach(&self) -> Result<(), Error> {
        self.connector.link().await.map(drop).map_err(|outage| Error::new(format!("`url`: {outage}")))
    }

    pub(crate) async fn decide(&self, request: Request<'_>) -> Result<Reply, Outage> {
        let asked = Instant::now();
        let mut asked_on = None;
        let answer = timeout_at(asked + self.deadline, async {
            let link = asked_on.insert(self.connector.link().await?);
            self.ask(link, request).await
        });
        if let Ok(reply) = answer.await {
            return reply;
        }
        if let Some(link) = asked_on {
            self.connector.suspect(&link, asked);
        }
        Err(Outage::new(format!("redis: no answer within {:?}", self.deadline)))
    }

    async fn ask(&self, link: &mut Link, request: Request<'_>) -> Result<Reply, Outage> {
        let answer = self.script.run(link.connection(), request).await;
        link.heard();
        let values = answer.map_err(|error| self.blame(link, &error))?;
        wire::read_reply(&values).ok_or_else(|| Outage::new("redis: the script's reply has an unknown shape"))
    }

    /// Drops the connection where the error says that it leads nowhere, or to a server that may not write.
    fn blame(&self, link: &Link, error: &RedisError) -> Outage {
        if error.is_unrecoverable_error() || is_read_only(error) {
            self.connector.discard(link);
        }
        connect::outage(error)
    }
}

/// Whether the server has become a replica, which Redis 6 says within an error of the script.
fn is_read_only(error: &RedisError) -> bool {
    error.code() == Some("READONLY") || error.detail().is_some_and(|detail| detail.contains("-READONLY"))
}
