//! The sentinels of a primary. They say where it is, and when another server takes its place.
//!
//! A demoted primary stays writable for seconds, and no call sees an error. So sentinels are asked not only when a
//! connection is lost: a [`Watcher`] for each sentinel goes on asking.

mod votes;

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, PushInfo, PushKind, RedisResult, cmd};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use self::votes::{SentinelAnswers, Term};
use super::address::{Address, Host, ShortList};
use super::fault::{Fault, asked_in_vain, attempt_error, slow_attempt};
use super::greeting::{Greeting, Mode};
use super::real_time;
use crate::error::BackendError;
use crate::lock::lock;
use crate::observe::report;
use crate::system::home::Driver;
use crate::system::{Connection, Instant, open, random_fraction, sleep, timeout};

/// How often a sentinel is asked that reports nothing, and about the pause after one does not answer.
const PERIOD: Duration = Duration::from_secs(1);

/// The events of a sentinel that names another primary.
const EVENTS: [&str; 2] = ["+promoted-slave", "+switch-master"];

pub(crate) struct Sentinels {
    /// The addresses of the sentinels, with the login for them.
    addresses: Vec<Address>,
    /// The login for the primary, wherever it is.
    pub(super) primary: Address,
    name: String,
    /// The longest time that a sentinel may take to answer.
    patience: Duration,
    driver: Driver,
    term: Arc<Term>,
    answers: Mutex<Option<Arc<SentinelAnswers>>>,
}

impl Sentinels {
    pub(crate) fn new(
        addresses: Vec<Address>,
        primary: Address,
        name: String,
        patience: Duration,
        driver: Driver,
    ) -> Self {
        Self { addresses, primary, name, patience, driver, term: Arc::default(), answers: Mutex::default() }
    }

    /// Returns a number that changes when another primary is to be followed.
    pub(crate) fn term(&self) -> u64 {
        self.term.number()
    }

    /// Waits until a sentinel names the primary; returns its address and the term.
    pub(crate) async fn primary(&self) -> Result<(Address, u64), BackendError> {
        let (host, term) = self
            .answers()
            .primary()
            .await
            .map_err(|error| asked_in_vain(format_args!("no sentinel says where to find {self}"), error))?;
        let address = self.primary.at(&host).map_err(|error| BackendError::new(error.to_string()))?;
        Ok((address, term))
    }

    /// Returns the answers of the sentinels. Starts the watchers, unless they are running.
    fn answers(&self) -> Arc<SentinelAnswers> {
        let mut current = lock(&self.answers);
        if let Some(answers) = current.as_ref().filter(|answers| answers.are_current()) {
            return Arc::clone(answers);
        }
        let answers = Arc::new(SentinelAnswers::new(self.addresses.len(), self.patience, &self.term));
        for (index, address) in self.addresses.iter().enumerate() {
            let watcher = Watcher::new(index, address, &self.name, self.patience, Arc::downgrade(&answers));
            self.driver.spawn(watcher.watch());
        }
        current.insert(answers).clone()
    }
}

impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the primary `{}` of {}", self.name, ShortList(&self.addresses))
    }
}

/// A task that asks one sentinel: at once, whenever it reports a failover, and otherwise once a second.
struct Watcher {
    index: usize,
    address: Address,
    name: String,
    /// The longest time that the sentinel may take to answer.
    patience: Duration,
    answers: Weak<SentinelAnswers>,
}

impl Watcher {
    fn new(index: usize, address: &Address, name: &str, patience: Duration, answers: Weak<SentinelAnswers>) -> Self {
        Self { index, address: address.clone(), name: name.to_owned(), patience, answers }
    }

    /// Asks until nobody needs the answers any more.
    async fn watch(self) {
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
