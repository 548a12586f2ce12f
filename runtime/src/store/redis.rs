//! Tallies in Redis, decided by the shared script in one round trip.

mod attempt_budget;
mod batcher;
mod connect;
mod fault;
mod link;
mod pack;
mod real_time;
mod script;
mod server;
mod stored_overrides;
mod wire;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

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

    /// Awaits a future that asks this server, as long as a decision may take.
    pub(crate) async fn within_deadline<T>(
        &self,
        asking: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        real_time::wait_for_bounded(self.until()?, asking).await.unwrap_or_else(|| Err(server::late()))
    }

    pub(crate) async fn decide(&self, request: Request<'_>) -> Result<Answer, BackendError> {
        let until = self.until()?;
        match self.batcher.ask(request, until).await? {
            Reply::Answer(answer) => Ok(answer),
            // Nothing was charged in either case. Sent alone, with the time just learned, the request is decided.
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

    /// Returns the time by which an answer has to be there.
    ///
    /// # Errors
    ///
    /// There is no runtime in which the server could be asked.
    fn until(&self) -> Result<Instant, BackendError> {
        match Handle::try_current() {
            Ok(_) => Ok(Instant::now() + self.deadline),
            Err(_) => Err(BackendError::new("redis: it can only be asked within a tokio runtime")),
        }
    }
}
