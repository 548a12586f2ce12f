//! Questions over the one connection to a server. While the server is away, each call is refused at once with the error
//! of the last attempt, and none waits for another attempt.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{RedisError, RedisResult};
use tokio::runtime::RuntimeFlavor;
use tokio::task::{coop, yield_now};

use super::attempt::ConnectTarget;
#[cfg(feature = "admin")]
use super::attempt::longest_attempt;
use super::breaker::LinkState;
use super::fault::{self, Fault};
use super::link::Link;
use super::real_time;
use super::reconnecting::{LinkLoss, Reconnector};
use crate::error::{BackendError, BackendErrorKind};
use crate::observe::opaque_debug;
use crate::system::home::Driver;
use crate::system::{Handle, Instant};

/// The least time without an answer after which a connection counts as lost, however short the deadline is.
const LEAST_PATIENCE: Duration = Duration::from_millis(100);

/// Asks a server over a connection, which is replaced when it is lost.
pub(crate) struct Connector {
    reconnector: Reconnector,
    deadline: Duration,
}

impl Connector {
    /// Does not connect yet. Callers wait for an answer for the time `deadline`. `driver` drives the connection.
    pub(crate) fn new(target: ConnectTarget, deadline: Duration, driver: Driver) -> Self {
        Self { reconnector: Reconnector::new(target, driver), deadline }
    }

    /// Connects if there is no connection, and waits as long as an attempt may take.
    pub(crate) async fn connect(&self) -> Result<(), BackendError> {
        self.link(self.reconnector.attempt_ends()).await.map(drop)
    }

    /// Why calls are refused, as far as this process knows; `None` if they are not.
    pub(crate) fn known_outage(&self) -> Option<BackendErrorKind> {
        self.reconnector.known_outage()
    }

    /// How many connections were made.
    pub(crate) fn connections(&self) -> u64 {
        self.reconnector.connections()
    }

    /// Returns why calls are refused; `None` if they are not.
    pub(crate) async fn outage(&self) -> Option<BackendError> {
        let LinkState::Away(error) = self.reconnector.link_state() else { return None };
        give_way().await;
        Some(error.into_refusal())
    }

    /// Returns where the server is, or where it is looked for.
    #[cfg(feature = "admin")]
    pub(crate) async fn whereabouts(&self) -> String {
        let location = self.reconnector.location();
        let found = real_time::wait_until(Instant::now() + longest_attempt(self.deadline), location.find()).await;
        found.and_then(Result::ok).map_or_else(|| location.to_string(), |(address, _)| address.to_string())
    }

    /// Asks a question, and replaces the connection if the answer shows that it is of no use.
    pub(crate) fn ask<T>(
        &self,
        until: Instant,
        question: impl AsyncFnOnce(&mut MultiplexedConnection) -> RedisResult<T>,
    ) -> impl Future<Output = Result<T, BackendError>> {
        self.ask_and_judge(until, question, |_| None)
    }

    /// Asks several questions at once, as [`ask`](Self::ask) asks one. Each has an answer of its own.
    pub(crate) async fn ask_each<T>(
        &self,
        until: Instant,
        questions: impl AsyncFnOnce(&mut MultiplexedConnection) -> RedisResult<Vec<RedisResult<T>>>,
    ) -> Result<Vec<Result<T, BackendError>>, BackendError> {
        let answers = self.ask_and_judge(until, questions, |answers| {
            answers.iter().filter_map(|answer| answer.as_ref().err()).find(|error| Fault::of(error).spoils_connection())
        });
        Ok(answers.await?.into_iter().map(|answer| answer.map_err(|error| self.explain(&error))).collect())
    }

    /// Asks a question. `spoiling` returns the error in an answer that shows that the connection is of no use.
    async fn ask_and_judge<T>(
        &self,
        until: Instant,
        question: impl AsyncFnOnce(&mut MultiplexedConnection) -> RedisResult<T>,
        spoiling: impl FnOnce(&T) -> Option<&RedisError>,
    ) -> Result<T, BackendError> {
        self.reconnector.driver().check_process()?;
        let mut link = self.link(until).await.map_err(BackendError::into_refusal)?;
        link.record_question();
        let answered = {
            // Pinned here: what waits for a future that is handed over by value keeps it twice.
            let asked = pin!(question(link.connection()));
            real_time::wait_until(until, asked).await
        };
        match answered {
            Some(Ok(answer)) => {
                match spoiling(&answer) {
                    None => self.record_answer(&link),
                    Some(error) => _ = self.blame(&link, error),
                }
                Ok(answer)
            }
            Some(Err(error)) => Err(self.blame(&link, &error)),
            None => {
                if link.silence() >= self.patience() {
                    self.reconnector.lose(&link, late(), LinkLoss::Silent);
                }
                Err(late())
            }
        }
    }

    /// Waits for a connection, and returns it.
    async fn link(&self, until: Instant) -> Result<Link, BackendError> {
        loop {
            match self.reconnector.link_state() {
                LinkState::Connected(link) => return Ok(link),
                LinkState::Connecting(mut reports) => {
                    // The channel is closed when the connection is there, or when the runtime of the repair is gone.
                    if real_time::wait_until(until, reports.changed()).await.is_none() {
                        self.reconnector.lock().open_if_slow(self.patience(), late());
                        return Err(late());
                    }
                }
                LinkState::Away(error) => {
                    give_way().await;
                    return Err(error);
                }
                LinkState::Unrepaired => return Err(late()),
            }
        }
    }

    /// Replaces the connection if the error shows that it is broken, or that its server is no primary.
    fn blame(&self, link: &Link, error: &RedisError) -> BackendError {
        let reason = self.explain(error);
        if Fault::of(error).spoils_connection() {
            self.reconnector.lose(link, reason.clone(), LinkLoss::Closed);
        } else {
            self.record_answer(link);
        }
        reason
    }

    fn explain(&self, error: &RedisError) -> BackendError {
        fault::answer_error(self.reconnector.location().address(), error)
    }

    fn record_answer(&self, link: &Link) {
        if link.record_answer() {
            self.reconnector.lock().recover();
        }
    }

    /// The longest time without an answer. It is less than the deadline, because calls are sent some time after they
    /// began.
    fn patience(&self) -> Duration {
        let whole = self.deadline.max(LEAST_PATIENCE);
        whole.saturating_sub(whole / 8)
    }
}

// Leaves out the address, which contains the password.
opaque_debug!(Connector);

/// Lets other tasks run: a caller that repeats its call at once would otherwise keep the repair from the runtime.
async fn give_way() {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::CurrentThread) => yield_now().await,
        _ => coop::consume_budget().await,
    }
}

pub(crate) fn late() -> BackendError {
    BackendError::away("redis: no answer within the deadline")
}
