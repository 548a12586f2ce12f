//! One multiplexed connection that recovers by itself.
//!
//! The connection is made in a task of its own, so a caller that gives up does not undo the attempt that others wait
//! for; there is never more than one attempt at a time, and after a failed one there is a pause with jitter.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{
    AsyncConnectionConfig, Client, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, PushInfo, PushKind, RedisError,
};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::fault::backend_error;
use crate::error::{BackendError, Error};

/// The longest one attempt to connect takes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause after the first failed attempt; it doubles with each further one up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Hands out the connection, and makes a new one when it is gone.
pub(super) struct Connector {
    client: Client,
    state: Arc<Mutex<State>>,
}

type Attempt = watch::Receiver<Option<Result<Link, BackendError>>>;

#[derive(Default)]
struct State {
    attempt: Option<Attempt>,
    /// How many attempts have failed since the last that succeeded.
    failures: u32,
    pause_until: Option<Instant>,
}

/// A connection, and what is known of its health.
#[derive(Clone)]
pub(super) struct Link {
    connection: MultiplexedConnection,
    /// Closed once the server has hung up, or the runtime that drove the connection is gone.
    pushes: mpsc::UnboundedSender<PushInfo>,
    born: Instant,
    heard_us: Arc<AtomicU64>,
}

impl Link {
    pub(super) fn connection(&mut self) -> &mut MultiplexedConnection {
        &mut self.connection
    }

    /// Notes that the server has answered.
    pub(super) fn heard(&self) {
        self.heard_us.fetch_max(self.age_us(Instant::now()), Ordering::Relaxed);
    }

    fn is_silent_since(&self, asked: Instant) -> bool {
        self.heard_us.load(Ordering::Relaxed) <= self.age_us(asked)
    }

    fn age_us(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.born).as_micros()).unwrap_or(u64::MAX)
    }

    fn is_alive(&self) -> bool {
        !self.pushes.is_closed()
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.heard_us, &other.heard_us)
    }
}

impl Connector {
    pub(super) fn new(url: &str) -> Result<Self, Error> {
        let info = connection_info(url)
            .map_err(|error| Error::new(format!("`url` cannot be read: {}", backend_error(&error))))?;
        // RESP3 tells a connection that was lost while nobody was asking.
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let client = Client::open(info.set_redis_settings(settings))
            .map_err(|error| Error::new(format!("`url` cannot be used: {}", backend_error(&error))))?;
        Ok(Self { client, state: Arc::default() })
    }

    /// Returns the connection, once there is one.
    pub(super) async fn link(&self) -> Result<Link, BackendError> {
        loop {
            let mut attempt = self.attempt()?;
            if let Ok(outcome) = attempt.wait_for(Option::is_some).await
                && let Some(outcome) = outcome.clone()
            {
                return outcome;
            }
            // The task that was connecting died with its runtime: attempt it on this one.
            self.forget(&attempt);
        }
    }

    /// Drops a connection that has been silent since `asked`: it may be half open.
    pub(super) fn suspect(&self, link: &Link, asked: Instant) {
        if link.is_silent_since(asked) {
            self.discard(link);
        }
    }

    /// Drops a connection, unless it has been replaced already.
    pub(super) fn discard(&self, link: &Link) {
        let mut state = self.lock();
        let current = state.attempt.as_ref().is_some_and(|attempt| match &*attempt.borrow() {
            Some(Ok(current)) => current.is(link),
            _ => false,
        });
        if current {
            state.attempt = None;
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
        if let Some(attempt) = &state.attempt {
            match &*attempt.borrow() {
                None => return Ok(attempt.clone()),
                Some(Ok(link)) if link.is_alive() => return Ok(attempt.clone()),
                Some(Err(error)) if state.pause_until.is_some_and(|until| Instant::now() < until) => {
                    return Err(error.clone());
                }
                Some(_) => {}
            }
        }
        let (outcome, attempt) = watch::channel(None);
        state.attempt = Some(attempt.clone());
        drop(state);
        tokio::spawn(settle(self.client.clone(), Arc::clone(&self.state), outcome));
        Ok(attempt)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
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

/// Makes one attempt and tells everybody who waits for it.
async fn settle(client: Client, state: Arc<Mutex<State>>, outcome: watch::Sender<Option<Result<Link, BackendError>>>) {
    let settled = connect(&client).await;
    {
        let mut state = lock(&state);
        match &settled {
            Ok(_) => {
                tracing::debug!("connected to redis");
                (state.failures, state.pause_until) = (0, None);
            }
            Err(error) => {
                if state.failures == 0 {
                    tracing::warn!(%error, "cannot connect to redis; trying again");
                }
                state.pause_until = Some(Instant::now() + pause(state.failures));
                state.failures = state.failures.saturating_add(1);
            }
        }
    }
    outcome.send_replace(Some(settled));
}

/// Doubles with every failure; the jitter keeps processes that failed together from returning together.
fn pause(failures: u32) -> Duration {
    let whole = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST_PAUSE);
    whole.mul_f64(0.5 + fastrand::f64() / 2.0)
}

async fn connect(client: &Client) -> Result<Link, BackendError> {
    let (pushes, received) = mpsc::unbounded_channel();
    let config = AsyncConnectionConfig::new()
        // The timeout below covers the greeting too.
        .set_connection_timeout(None)
        // The caller's deadline covers the response too.
        .set_response_timeout(None)
        .set_push_sender(pushes.clone());
    let connected = client.get_multiplexed_async_connection_with_config(&config);
    let connection = match tokio::time::timeout(CONNECT_TIMEOUT, connected).await {
        Ok(connected) => connected.map_err(|error| backend_error(&error))?,
        Err(_) => return Err(BackendError::new(format!("redis: no connection within {CONNECT_TIMEOUT:?}"))),
    };
    tokio::spawn(watch_for_the_end(received));
    Ok(Link { connection, pushes, born: Instant::now(), heard_us: Arc::default() })
}

/// Ends, and by that closes the channel, when the server hangs up or nobody holds the connection any more.
async fn watch_for_the_end(mut pushes: mpsc::UnboundedReceiver<PushInfo>) {
    while let Some(push) = pushes.recv().await {
        if push.kind == PushKind::Disconnection {
            return;
        }
    }
}
