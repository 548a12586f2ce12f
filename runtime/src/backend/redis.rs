//! Tallies in Redis, decided by the shared script in one round trip.

mod batch;
mod connect;
mod overrides;
mod pack;
mod server;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use self::batch::Batcher;
use self::server::Server;
use self::wire::Reply;
use super::{Answer, Name, Request};
use crate::clock::Clock;
use crate::{Error, Outage};

/// Tallies in Redis.
#[derive(Debug)]
pub(crate) struct Redis {
    server: Arc<Server>,
    batcher: Arc<Batcher>,
    deadline: Duration,
}

impl Redis {
    pub(crate) fn new(url: &str, prefix: &str, deadline: Duration, clock: Clock) -> Result<Self, Error> {
        let server = Arc::new(Server::new(url, prefix, clock)?);
        Ok(Self { batcher: Batcher::new(Arc::clone(&server)), server, deadline })
    }

    /// Connects, so that a wrong set-up is found at start-up.
    pub(crate) async fn reach(&self) -> Result<(), Error> {
        let failed = |outage| Error::new(format!("`url`: {outage}"));
        self.until().map_err(failed)?;
        self.server.reach().await.map_err(failed)
    }

    /// The longest a decision takes.
    pub(crate) fn deadline(&self) -> Duration {
        self.deadline
    }

    pub(crate) async fn decide(&self, request: Request<'_>) -> Result<Answer, Outage> {
        let until = self.until()?;
        match self.batcher.ask(request, until).await? {
            Reply::Answer(answer) => Ok(answer),
            // Nothing was charged in either case. Alone and by the time just learnt, the next answer is the last.
            Reply::OffTheClock | Reply::Unreadable => match self.server.ask(&[request], until).await?.pop() {
                Some(Reply::Answer(answer)) => Ok(answer),
                Some(Reply::Unreadable) => Err(Outage::new("redis: a tally's key holds something that is no tally")),
                _ => Err(Outage::new("redis: the server's clock is not where it was a moment ago")),
            },
        }
    }

    /// Takes back the hits of a call that was admitted then; tells whether there were any.
    pub(crate) async fn refund(&self, request: Request<'_>, admitted_us: u64) -> Result<bool, Outage> {
        self.server.refund(request, admitted_us, self.until()?).await
    }

    /// Bans a subject for that long, or ends its ban.
    pub(crate) async fn ban(&self, name: Name<'_>, duration_us: u64) -> Result<(), Outage> {
        self.server.ban(name, duration_us, self.until()?).await
    }

    /// Forgets the tallies of such a call.
    pub(crate) async fn reset(&self, request: Request<'_>) -> Result<(), Outage> {
        self.server.reset(request, self.until()?).await
    }

    /// When an answer has to be there.
    ///
    /// # Errors
    ///
    /// There is no runtime to ask it in.
    fn until(&self) -> Result<Instant, Outage> {
        match Handle::try_current() {
            Ok(_) => Ok(Instant::now() + self.deadline),
            Err(_) => Err(Outage::new("redis: it can only be asked within a tokio runtime")),
        }
    }
}
