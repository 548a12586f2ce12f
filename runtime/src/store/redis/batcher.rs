//! Concurrent callers of one process share round trips.
//!
//! A lone call goes out at once. While as many are under way as may be, those that arrive wait in a queue, and the next
//! call takes them all. Nothing is sent for a caller that gave up while it waited.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::server::{Server, late};
use super::wire::Reply;
use crate::error::BackendError;
use crate::policy::Policy;
use crate::store::request::{CallOptions, Request};
use crate::subject::SubjectKey;

/// The most calls under way. With two, the server decides one while this process reads the answers to the other.
const MOST_UNDER_WAY: usize = 2;

/// The most requests in one call: the server does nothing else while it decides them, some ten microseconds each.
const MOST_REQUESTS: usize = 128;

/// The most rules in one call, which bounds its bytes: a rule has some 20 (more with a schedule), and a key of 200 at most.
const MOST_RULES: usize = 1024;

/// Gathers requests into calls.
#[derive(Debug)]
pub(super) struct Batcher {
    server: Arc<Server>,
    queue: Mutex<Queue>,
    me: Weak<Self>,
}

#[derive(Debug, Default)]
struct Queue {
    /// How many calls are under way.
    under_way: usize,
    waiting: VecDeque<Waiting>,
}

/// A request that waits for the next call.
#[derive(Debug)]
struct Waiting {
    policy: Policy,
    subjects: Vec<SubjectKey>,
    options: CallOptions,
    until: Instant,
    answer: oneshot::Sender<Result<Reply, BackendError>>,
}

/// The right to have a call under way; when it ends, the next call begins.
struct Turn(Arc<Batcher>);

impl Batcher {
    pub(super) fn new(server: Arc<Server>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self { server, queue: Mutex::default(), me: me.clone() })
    }

    /// Asks, until then at the latest.
    pub(super) async fn ask(&self, request: Request<'_>, until: Instant) -> Result<Reply, BackendError> {
        match self.join(request, until) {
            Err(_turn) => one(self.server.ask(&[request], until).await?),
            // One timer for each caller: the server's own is for who asks it alone.
            Ok(answer) => match timeout_at(until, answer).await {
                Ok(answered) => answered.unwrap_or_else(|_| Err(BackendError::new("redis: the runtime was shut down"))),
                Err(_) => Err(late()),
            },
        }
    }

    /// Queues the request, or hands out a turn while there is one.
    fn join(
        &self,
        request: Request<'_>,
        until: Instant,
    ) -> Result<oneshot::Receiver<Result<Reply, BackendError>>, Turn> {
        let mut queue = self.lock();
        if queue.under_way < MOST_UNDER_WAY
            && let Some(me) = self.me.upgrade()
        {
            queue.under_way += 1;
            return Err(Turn(me));
        }
        let (answer, answered) = oneshot::channel();
        queue.waiting.push_back(Waiting::new(request, until, answer));
        Ok(answered)
    }

    /// Takes what fits into one call, or ends the turn when nobody waits.
    fn next(&self) -> Vec<Waiting> {
        let mut queue = self.lock();
        let mut batch = Vec::new();
        let mut rules = 0;
        while batch.len() < MOST_REQUESTS
            && rules < MOST_RULES
            && let Some(waiting) = queue.waiting.pop_front()
        {
            if !waiting.answer.is_closed() {
                rules += waiting.policy.rules().len();
                batch.push(waiting);
            }
        }
        if batch.is_empty() {
            queue.under_way -= 1;
        }
        batch
    }

    /// Ends a turn without anybody to go on.
    fn give_up(&self) {
        let mut queue = self.lock();
        queue.under_way -= 1;
        if queue.under_way == 0 {
            queue.waiting.clear();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let batch = self.0.next();
        if batch.is_empty() {
            return;
        }
        match Handle::try_current() {
            Ok(runtime) => _ = runtime.spawn(call(Self(Arc::clone(&self.0)), batch)),
            // The runtime is being shut down. Who waits on another one is told so when the senders are dropped.
            Err(_) => self.0.give_up(),
        }
    }
}

/// Makes one call for many, in a task of its own: none of them ends it by giving up.
async fn call(turn: Turn, batch: Vec<Waiting>) {
    let requests: Vec<_> = batch.iter().map(Waiting::request).collect();
    // The last of them has waited the shortest.
    let until = batch.iter().map(|waiting| waiting.until).max().unwrap_or_else(Instant::now);
    let replies = turn.0.server.ask(&requests, until).await;
    drop(requests);
    drop(turn);
    match replies {
        Ok(replies) => {
            for (waiting, reply) in batch.into_iter().zip(replies) {
                // Whoever gave up meanwhile has no use for it.
                let _ = waiting.answer.send(Ok(reply));
            }
        }
        Err(error) => {
            for waiting in batch {
                let _ = waiting.answer.send(Err(error.clone()));
            }
        }
    }
}

fn one(mut replies: Vec<Reply>) -> Result<Reply, BackendError> {
    replies.pop().ok_or_else(|| BackendError::new("redis: the script's reply has an unknown shape"))
}

impl Waiting {
    fn new(request: Request<'_>, until: Instant, answer: oneshot::Sender<Result<Reply, BackendError>>) -> Self {
        let Request { policy, subjects, options } = request;
        Self { policy: policy.clone(), subjects: subjects.to_vec(), options, until, answer }
    }

    fn request(&self) -> Request<'_> {
        Request { policy: &self.policy, subjects: &self.subjects, options: self.options }
    }
}
