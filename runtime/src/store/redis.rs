//! Tallies in Redis, decided by the shared script in one round trip.

mod batcher;
mod connect;
mod fault;
mod pack;
mod script;
mod server;
mod stored_overrides;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use self::batcher::Batcher;
use self::server::Server;
pub(crate) use self::stored_overrides::StoredOverride;
use self::wire::Reply;
use crate::clock::Clock;
use crate::error::{BackendError, Error};
use crate::store::answer::Answer;
use crate::store::request::Request;
use crate::store::tally_id::TallyId;

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
        let failed = |error| Error::backend("url", error);
        self.until().map_err(failed)?;
        self.server.reach().await.map_err(failed)
    }

    /// The server's time, as well as this process knows it.
    pub(crate) fn now_us(&self) -> u64 {
        self.server.now_us()
    }

    /// Asks the server for its time, which every decision also does.
    pub(crate) async fn refresh_time(&self) -> Result<(), BackendError> {
        self.server.refresh_time(self.until()?).await
    }

    /// The longest a decision takes.
    pub(crate) fn deadline(&self) -> Duration {
        self.deadline
    }

    pub(crate) async fn decide(&self, request: Request<'_>) -> Result<Answer, BackendError> {
        let until = self.until()?;
        match self.batcher.ask(request, until).await? {
            Reply::Answer(answer) => Ok(answer),
            // Nothing was charged in either case. Alone and by the time just learnt, the next answer is the last.
            Reply::StaleTicks | Reply::Unreadable => match self.server.ask(&[request], until).await?.pop() {
                Some(Reply::Answer(answer)) => Ok(answer),
                Some(Reply::Unreadable) => {
                    Err(BackendError::new("redis: a tally's key holds something that is no tally"))
                }
                _ => Err(BackendError::new("redis: the server's clock is not where it was a moment ago")),
            },
        }
    }

    /// Removes the hits of a call that was admitted then, from every rule in which they still count; returns whether there
    /// was one.
    pub(crate) async fn refund(&self, request: Request<'_>, admitted_us: u64) -> Result<bool, BackendError> {
        self.server.refund(request, admitted_us, self.until()?).await
    }

    /// Bans a subject for that long, or ends its ban.
    pub(crate) async fn ban(&self, id: TallyId<'_>, duration_us: u64) -> Result<(), BackendError> {
        self.server.ban(id, duration_us, self.until()?).await
    }

    /// Removes the tallies of such a call.
    pub(crate) async fn reset(&self, request: Request<'_>) -> Result<(), BackendError> {
        self.server.reset(request, self.until()?).await
    }

    /// The time by which an answer has to be there.
    ///
    /// # Errors
    ///
    /// There is no runtime to ask the server in.
    fn until(&self) -> Result<Instant, BackendError> {
        match Handle::try_current() {
            Ok(_) => Ok(Instant::now() + self.deadline),
            Err(_) => Err(BackendError::new("redis: it can only be asked within a tokio runtime")),
        }
    }
}
