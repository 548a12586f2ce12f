//! One connection to a server, which is made again when it is lost.
//!
//! Each attempt to connect runs in a task of its own, so a caller that gives up does not end the attempt that others wait
//! for. A limiter makes one attempt at a time. After attempts that brought no answer there is a pause, and an
//! [`AttemptBudget`] bounds all attempts, whatever they fail with.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ::redis::{AsyncConnectionConfig, Client, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisError};
use tokio::sync::watch;

use super::attempt_budget::AttemptBudget;
use super::fault::backend_error;
use super::link::{Link, Pushes};
use super::real_time;
use crate::error::{BackendError, Error};

/// The longest one attempt to connect takes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The first pause; it doubles with each further failure up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Hands out the connection, and makes a new one when it is lost.
pub(super) struct Connector {
    client: Client,
    budget: Arc<AttemptBudget>,
    state: Arc<Mutex<State>>,
}

type Outcome = Result<Link, BackendError>;
type Attempt = watch::Receiver<Option<Outcome>>;

#[derive(Default)]
struct State {
    /// The latest attempt. Once its connection is lost, it has failed.
    attempt: Option<Attempt>,
    /// How many attempts have brought no answer since the last that did.
    failures: u32,
    pause_until: Option<Instant>,
}

impl Connector {
    pub(super) fn new(url: &str) -> Result<Self, Error> {
        let info = connection_info(url)
            .map_err(|error| Error::new(format!("`url` cannot be read: {}", backend_error(&error))))?;
        // With RESP3, the client library reports a connection that is lost between two calls.
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let budget = AttemptBudget::shared(&info.addr().to_string());
        let client = Client::open(info.set_redis_settings(settings))
            .map_err(|error| Error::new(format!("`url` cannot be used: {}", backend_error(&error))))?;
        Ok(Self { client, budget, state: Arc::default() })
    }

    /// Returns the connection, once there is one.
    pub(super) async fn link(&self) -> Outcome {
        loop {
            let mut attempt = self.attempt()?;
            if let Ok(outcome) = attempt.wait_for(Option::is_some).await
                && let Some(outcome) = outcome.clone()
            {
                return outcome;
            }
            // The runtime of the attempt is gone, and the attempt with it. The next one runs on this runtime.
            self.forget(&attempt);
        }
    }

    /// Records that the server has answered over this connection.
    pub(super) fn record_answer(&self, link: &Link) {
        if link.record_answer() {
            let mut state = self.lock();
            state.failures = 0;
            state.pause_until = None;
        }
    }

    /// Drops a connection that has been silent since `asked`: it may be half open.
    pub(super) fn suspect(&self, link: &Link, asked: Instant, error: &BackendError) {
        if link.is_silent_since(asked) {
            self.discard(link, error);
        }
    }

    /// Drops a connection because of that error, unless it has been replaced already.
    pub(super) fn discard(&self, link: &Link, error: &BackendError) {
        let mut state = self.lock();
        if state.link_if(|current| current.is_same_as(link)).is_some() {
            state.lose(link, error.clone());
        }
    }

    fn forget(&self, attempt: &Attempt) {
        let mut state = self.lock();
        if state.attempt.as_ref().is_some_and(|current| current.same_channel(attempt)) {
            state.attempt = None;
        }
    }

    /// Returns the attempt that is under way or has succeeded, or begins one.
    fn attempt(&self) -> Result<Attempt, BackendError> {
        let mut state = self.lock();
        if let Some(attempt) = state.usable_attempt() {
            return Ok(attempt);
        }
        state.check_link();
        match state.error() {
            Some(error) if !self.may_retry(&state) => return Err(error),
            Some(_) => {}
            // Nothing has failed: the limiter is new, or the runtime of its connection is gone.
            None => self.budget.spend(Instant::now()),
        }
        let (outcome, attempt) = watch::channel(None);
        state.attempt = Some(attempt.clone());
        drop(state);
        tokio::spawn(settle(self.client.clone(), Arc::clone(&self.state), outcome));
        Ok(attempt)
    }

    fn may_retry(&self, state: &State) -> bool {
        let now = Instant::now();
        state.pause_until.is_none_or(|until| until <= now) && self.budget.try_spend(now)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    /// Returns the connection, if there is one for which that holds.
    fn link_if(&self, holds: impl Fn(&Link) -> bool) -> Option<Link> {
        match &*self.attempt.as_ref()?.borrow() {
            Some(Ok(link)) if holds(link) => Some(link.clone()),
            _ => None,
        }
    }

    /// Returns the attempt, if it is under way or its connection is open.
    fn usable_attempt(&self) -> Option<Attempt> {
        let attempt = self.attempt.as_ref()?;
        let is_usable = match &*attempt.borrow() {
            None => true,
            Some(outcome) => outcome.as_ref().is_ok_and(Link::is_open),
        };
        is_usable.then(|| attempt.clone())
    }

    /// Returns what the attempt has failed with.
    fn error(&self) -> Option<BackendError> {
        self.attempt.as_ref()?.borrow().as_ref()?.as_ref().err().cloned()
    }

    /// Finds out whether the connection was lost while nothing was asked.
    fn check_link(&mut self) {
        match self.link_if(|link| !link.is_open()) {
            Some(link) if link.was_hung_up() => {
                self.lose(&link, BackendError::new("redis: the server closed the connection"));
            }
            Some(_) => self.attempt = None,
            None => {}
        }
    }

    fn lose(&mut self, link: &Link, error: BackendError) {
        // A single loss is repaired at once; from the second one on, there is a pause.
        if !link.has_answered() {
            match self.failures {
                0 => tracing::warn!(%error, "lost the connection to redis before its first answer; trying again"),
                failures => self.pause(failures - 1),
            }
            self.failures = self.failures.saturating_add(1);
        }
        self.attempt = Some(watch::channel(Some(Err(error))).1);
    }

    fn fail(&mut self, error: &BackendError) {
        if self.failures == 0 {
            tracing::warn!(%error, "cannot connect to redis; trying again");
        }
        self.pause(self.failures);
        self.failures = self.failures.saturating_add(1);
    }

    /// Begins a pause that doubles with every failure. The jitter keeps processes that failed together from returning
    /// together.
    fn pause(&mut self, failures: u32) {
        let whole = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST_PAUSE);
        self.pause_until = Some(Instant::now() + whole.mul_f64(0.5 + fastrand::f64() / 2.0));
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client knows the password.
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connection_info(url: &str) -> Result<ConnectionInfo, RedisError> {
    let info = url.into_connection_info()?;
    let settings = info.tcp_settings().clone().set_nodelay(true);
    Ok(info.set_tcp_settings(settings))
}

/// Makes one attempt and hands its outcome to every caller that waits for it.
async fn settle(client: Client, state: Arc<Mutex<State>>, outcome: watch::Sender<Option<Outcome>>) {
    let settled = connect(&client).await;
    match &settled {
        Ok(_) => tracing::debug!("connected to redis"),
        Err(error) => lock(&state).fail(error),
    }
    outcome.send_replace(Some(settled));
}

async fn connect(client: &Client) -> Outcome {
    real_time::compare_clocks();
    let pushes = Pushes::new();
    let config = AsyncConnectionConfig::new()
        // The timeout below covers the greeting too.
        .set_connection_timeout(None)
        // The caller's deadline covers the response too.
        .set_response_timeout(None)
        .set_push_sender(pushes.sender());
    let connected = client.get_multiplexed_async_connection_with_config(&config);
    match real_time::wait_until(Instant::now() + CONNECT_TIMEOUT, connected).await {
        Some(Ok(connection)) => Ok(Link::new(connection, pushes)),
        Some(Err(error)) => Err(backend_error(&error)),
        None => Err(BackendError::new(format!("redis: no connection within {CONNECT_TIMEOUT:?}"))),
    }
}
