//! A server, and the requests that it is asked.

use std::sync::Arc;
use std::time::Instant;

use crate::error::BackendError;
use crate::store::answer::Answer;
use crate::store::redis::batching::batcher::Batcher;
use crate::store::redis::connection::visit::Visit;
use crate::store::redis::script::question::unknown_shape;
use crate::store::redis::script::wire::Reply;
use crate::store::redis::server::Server;
use crate::store::request::Request;

/// A server, and the requests that it is asked.
#[derive(Debug)]
pub(super) struct Node {
    server: Arc<Server>,
    batcher: Arc<Batcher>,
}

impl Node {
    pub(super) fn new(server: Server) -> Self {
        let server = Arc::new(server);
        Self { batcher: Batcher::new(Arc::clone(&server)), server }
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// Decides a request, together with those that came at the same time.
    pub(super) async fn decide(
        &self,
        request: Request<'_>,
        now: Instant,
        until: Instant,
    ) -> Result<Answer, BackendError> {
        if self.server.known_outage().is_some()
            // Boxed, as it is rare: no other call carries its state.
            && let Some(outage) = Box::pin(self.server.outage()).await
        {
            return Err(outage);
        }
        match self.batcher.ask(request, now, until).await? {
            Reply::Answer(answer) => Ok(answer),
            // Nothing was charged. Boxed, as it is rare: no other call carries its state.
            Reply::AskAgain | Reply::Unreadable => Box::pin(self.decide_alone(request, until, Visit::Owner)).await,
        }
    }

    /// Decides a request that cannot be decided with others, or not by the time that was known of the server.
    pub(super) async fn decide_alone(
        &self,
        request: Request<'_>,
        until: Instant,
        visit: Visit,
    ) -> Result<Answer, BackendError> {
        // The first answer has the server's time, by which the second has the right ticks. Where the clock was set back, each
        // call forgets what is later than now, of one subject at least.
        for _ in 0..=request.subjects.len() {
            match self.server.ask_on(&[request], until, visit).await?.pop() {
                Some(Reply::Answer(answer)) => return Ok(answer),
                Some(Reply::Unreadable) => {
                    return Err(BackendError::new("redis: a tally's key holds something that is no tally"));
                }
                Some(Reply::AskAgain) => {}
                None => return Err(unknown_shape()),
            }
        }
        Err(BackendError::new("redis: the server's clock is not where it was a moment ago"))
    }
}
