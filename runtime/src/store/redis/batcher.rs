//! Concurrent callers of one process share round trips.
//!
//! A single call is sent at once. While the most calls are under way, requests that arrive wait in a queue, and the next
//! call takes as many of them as it may. Nothing is sent for a caller that gave up in the queue.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::real_time;
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

/// The right to have a call under way. When it ends, the next call begins.
struct Turn(Arc<Batcher>);

/// What a request gets when it arrives.
enum Entry {
    Turn(Turn),
    Queued(oneshot::Receiver<Result<Reply, BackendError>>),
}

impl Batcher {
    pub(super) fn new(server: Arc<Server>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self { server, queue: Mutex::default(), me: me.clone() })
    }

    /// Returns the reply to a request, or an error once it is too late for one.
    pub(super) async fn ask(&self, request: Request<'_>, until: Instant) -> Result<Reply, BackendError> {
        match self.enter(request, until) {
            Entry::Turn(_turn) => one(self.server.ask(&[request], until).await?),
            Entry::Queued(answer) => match real_time::wait_for_bounded(until, answer).await {
                Some(Ok(answer)) => answer,
                Some(Err(_)) => Err(BackendError::new("redis: the runtime was shut down")),
                None => Err(late()),
            },
        }
    }

    /// Takes a turn if one is free, or queues the request.
    fn enter(&self, request: Request<'_>, until: Instant) -> Entry {
        let mut queue = self.lock();
        if queue.under_way < MOST_UNDER_WAY
            && let Some(me) = self.me.upgrade()
        {
            queue.under_way += 1;
            return Entry::Turn(Turn(me));
        }
        let (answer, answered) = oneshot::channel();
        queue.waiting.push_back(Waiting::new(request, until, answer));
        Entry::Queued(answered)
    }

    /// Takes what fits into one call from the queue. An empty queue ends the turn.
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

    /// Ends a turn that no task can continue.
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
            // The runtime is being shut down. Callers on other runtimes get an error as the senders are dropped.
            Err(_) => self.0.give_up(),
        }
    }
}

/// Makes one call for many callers, in a task of its own, which goes on when one of them gives up.
async fn call(turn: Turn, batch: Vec<Waiting>) {
    let requests: Vec<_> = batch.iter().map(Waiting::request).collect();
    // Each caller has a timer of its own; the call may take as long as the most patient one waits.
    let until = batch.iter().map(|waiting| waiting.until).max().unwrap_or_else(Instant::now);
    let replies = turn.0.server.ask(&requests, until).await;
    drop(requests);
    drop(turn);
    match replies {
        Ok(replies) => {
            for (waiting, reply) in batch.into_iter().zip(replies) {
                // A caller that gave up meanwhile does not receive it.
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
