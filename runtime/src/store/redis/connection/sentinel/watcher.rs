//! A task that asks one sentinel: at once, whenever it reports a failover, and otherwise once a second.

use std::future::Future;
use std::sync::Weak;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, PushInfo, PushKind, RedisResult, cmd};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::votes::SentinelAnswers;
use crate::error::BackendError;
use crate::observe::report;
use crate::store::redis::connection::address::{Address, Host};
use crate::store::redis::connection::fault::{Fault, attempt_error, slow_attempt};
use crate::store::redis::connection::greeting::{Greeting, Mode};
use crate::store::redis::connection::real_time;
use crate::system::{Connection, Instant, open, random_fraction, sleep, timeout};

/// How often a sentinel is asked that reports nothing, and about the pause after one does not answer.
const PERIOD: Duration = Duration::from_secs(1);

/// The events of a sentinel that names another primary.
const EVENTS: [&str; 2] = ["+promoted-slave", "+switch-master"];

pub(super) struct Watcher {
    index: usize,
    address: Address,
    name: String,
    /// The longest time that the sentinel may take to answer.
    patience: Duration,
    answers: Weak<SentinelAnswers>,
}

impl Watcher {
    pub(super) fn new(
        index: usize,
        address: &Address,
        name: &str,
        patience: Duration,
        answers: Weak<SentinelAnswers>,
    ) -> Self {
        Self { index, address: address.clone(), name: name.to_owned(), patience, answers }
    }

    /// Asks until nobody needs the answers any more.
    pub(super) async fn watch(self) {
        while self.answers.strong_count() > 0 {
            if let Err(error) = self.observe().await {
                self.report(Err(error.clone()));
                report(move || tracing::debug!(%error, "a sentinel does not say where the redis primary is"));
            }
            sleep(PERIOD.mul_f64(0.5 + random_fraction() / 2.0)).await;
        }
    }

    /// Asks over one connection, until it fails or nobody needs the answers any more.
    async fn observe(&self) -> Result<(), BackendError> {
        let (sender, mut reports) = unbounded_channel();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_push_sender(sender);
        let connected = real_time::wait_until(Instant::now() + self.patience, self.connect(&config)).await;
        let mut connection = match connected {
            Some(Ok(connection)) => connection,
            Some(Err(error)) => return Err(attempt_error(&self.address, &error).await),
            None => return Err(slow_attempt(&self.address, self.patience).await),
        };
        let greeting = self.in_time(async { Ok(cmd("HELLO").query_async(&mut connection).await) }).await?;
        Greeting::read(greeting).check_mode(Mode::Sentinel, &self.address)?;
        self.in_time(connection.subscribe(&EVENTS)).await?;
        while self.report(Ok(self.ask(&mut connection).await?)) {
            let next = reported(&mut reports);
            // If a test has paused tokio's clock, nothing is asked only because time passes.
            let is_connected =
                if real_time::clocks_differ() { next.await } else { timeout(PERIOD, next).await.unwrap_or(true) };
            if !is_connected {
                return Err(BackendError::away(format!(
                    "redis: the sentinel at {} closed the connection",
                    self.address
                )));
            }
        }
        Ok(())
    }

    /// Connects. Does so without a login if the sentinel refuses that of the primary.
    async fn connect(&self, config: &AsyncConnectionConfig) -> RedisResult<Connection> {
        let connect = async |address: &Address| open(&address.client, config).await;
        match connect(&self.address).await {
            Err(refused) if Fault::of(&refused) == Fault::Wrong => match self.address.without_login() {
                // A sentinel that wants a login refuses its absence, too. The first refusal is more helpful.
                Some(address) => connect(&address).await.map_err(|_| refused),
                None => Err(refused),
            },
            connected => connected,
        }
    }

    async fn ask(&self, connection: &mut MultiplexedConnection) -> Result<Host, BackendError> {
        let mut command = cmd("SENTINEL");
        command.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.name);
        let answer: Option<(String, u16)> = self.in_time(command.query_async(connection)).await?;
        let Some((name, port)) = answer else {
            let Self { name, address, .. } = self;
            let text =
                format!("redis: the sentinel at {address} watches no primary `{name}`; check the name in the url");
            return Err(BackendError::new(text));
        };
        Host::named(&name, port).ok_or_else(|| {
            let Self { name, address, .. } = self;
            let text = format!("redis: the sentinel at {address} names no host of the primary `{name}`");
            BackendError::new(text)
        })
    }

    async fn in_time<T>(&self, asked: impl Future<Output = RedisResult<T>>) -> Result<T, BackendError> {
        match real_time::wait_until(Instant::now() + self.patience, asked).await {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => Err(attempt_error(&self.address, &error).await),
            None => Err(BackendError::away(format!("redis: no answer of the sentinel at {}", self.address))),
        }
    }

    /// Reports an answer; returns whether anybody needs it.
    fn report(&self, answer: Result<Host, BackendError>) -> bool {
        let answers = self.answers.upgrade();
        answers.map(|answers| answers.record(self.index, answer)).is_some()
    }
}

/// Waits until the sentinel reports a failover or hangs up; returns whether it is still connected.
async fn reported(reports: &mut UnboundedReceiver<PushInfo>) -> bool {
    while let Some(report) = reports.recv().await {
        match report.kind {
            PushKind::Message => return true,
            PushKind::Disconnection => return false,
            _ => {}
        }
    }
    false
}
