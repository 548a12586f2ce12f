//! One attempt to connect to a server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Cmd, Value, cmd};
use futures_util::FutureExt as _;
use futures_util::future::join;
use tokio::sync::mpsc::unbounded_channel;

use super::address::Address;
use super::diagnosis::LONGEST_DIAGNOSIS;
use super::fault::{self, Fault};
use super::greeting::{Greeting, Mode};
use super::link::Link;
use super::real_time;
use super::sentinel::Sentinels;
use crate::error::BackendError;
use crate::system::{Instant, JoinSet, open};

/// The longest time that an attempt takes, unless callers wait longer.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(1);

/// The server to connect to, and the first questions to it.
#[derive(Clone)]
pub(crate) struct ConnectTarget {
    pub(crate) location: ServerLocation,
    /// The kind of server that is expected.
    pub(crate) mode: Mode,
    /// A question that changes nothing. The server answers it with an error if another one has become the primary.
    pub(crate) probe: Cmd,
    /// The longest time that an attempt takes.
    pub(crate) longest: Duration,
}

/// Returns the longest time that an attempt takes for callers with this deadline.
pub(crate) fn longest_attempt(deadline: Duration) -> Duration {
    deadline.max(LONGEST_ATTEMPT)
}

/// Returns the longest time until such an attempt has failed and the reason is known.
pub(crate) fn longest_explained(deadline: Duration) -> Duration {
    longest_attempt(deadline) + LONGEST_DIAGNOSIS
}

impl ConnectTarget {
    /// When an attempt that begins now has failed at the latest, and the reason is known.
    pub(crate) fn ends(&self) -> Instant {
        let connecting = self.longest + LONGEST_DIAGNOSIS;
        let finding = if self.location.is_known() { Duration::ZERO } else { connecting };
        Instant::now() + finding + connecting
    }

    pub(crate) async fn find(&self) -> Result<(Address, u64), BackendError> {
        let until = Instant::now() + self.longest + LONGEST_DIAGNOSIS;
        let found = real_time::wait_until(until, self.location.find()).await;
        found.unwrap_or_else(|| Err(BackendError::away(format!("redis: nobody says where to find {}", self.location))))
    }

    /// Connects; returns the connection after the first answer of the server. `on_hang_up` is called when the server
    /// closes it.
    pub(crate) async fn connect(
        self,
        address: Address,
        on_hang_up: impl FnOnce() + Send + 'static,
    ) -> Result<Link, BackendError> {
        // The attempt runs in a task, because the client library may panic if it has no provider of cryptography. A
        // panic here would end the repair.
        let mut attempt = JoinSet::new();
        attempt.spawn(self.attempt(address, on_hang_up).boxed());
        match attempt.join_next().await {
            Some(Ok(outcome)) => outcome,
            _ => Err(BackendError::new("redis: the attempt to connect panicked")),
        }
    }

    async fn attempt(self, address: Address, on_hang_up: impl FnOnce() + Send + 'static) -> Result<Link, BackendError> {
        real_time::compare_clocks();
        let pushes = unbounded_channel();
        let config = AsyncConnectionConfig::new()
            // The timeout below also covers the greeting.
            .set_connection_timeout(None)
            // The caller's deadline also covers the response.
            .set_response_timeout(None)
            .set_push_sender(pushes.0.clone());
        let connected = async {
            let greeted = open(&address.client, &config).await;
            let mut connection = match greeted {
                Ok(connection) => connection,
                Err(error) => return Err(fault::attempt_error(&address, &error).await),
            };
            self.prove(&address, &mut connection).await?;
            Ok(connection)
        };
        match real_time::wait_until(Instant::now() + self.longest, connected).await {
            Some(Ok(connection)) => Ok(Link::new(connection, pushes, on_hang_up)),
            Some(Err(error)) => Err(error),
            None => Err(fault::slow_attempt(&address, self.longest).await),
        }
    }

    /// Finds out whether the server answers, is of the expected kind and is the primary. So no call has to wait to
    /// learn that.
    async fn prove(&self, address: &Address, connection: &mut MultiplexedConnection) -> Result<(), BackendError> {
        // The client library sends a greeting, too, but does not return the answer.
        let (hello, mut another) = (cmd("HELLO"), connection.clone());
        let (greeting, probed) =
            join(hello.query_async(connection), self.probe.query_async::<Value>(&mut another)).await;
        let greeting = Greeting::read(greeting);
        greeting.check_mode(self.mode, address)?;
        match probed {
            Err(error) if Fault::of(&error).spoils_connection() => Err(fault::attempt_error(address, &error).await),
            // The server answers. The probe may be refused for reasons that do not concern the next call.
            _ => greeting.check_role(self.mode, address),
        }
    }
}

/// The place of a server: a fixed address, or the one that the sentinels name.
#[derive(Clone)]
pub(crate) enum ServerLocation {
    Fixed(Box<Address>),
    BySentinels(Arc<Sentinels>),
}

impl ServerLocation {
    /// Returns a number that changes when the server is at another address.
    pub(crate) fn term(&self) -> u64 {
        match self {
            Self::Fixed(_) => 0,
            Self::BySentinels(sentinels) => sentinels.term(),
        }
    }

    /// Whether the address is known without a question to sentinels.
    pub(crate) fn is_known(&self) -> bool {
        matches!(self, Self::Fixed(_))
    }

    /// The address, as far as it is known before sentinels are asked.
    pub(crate) fn address(&self) -> &Address {
        match self {
            Self::Fixed(address) => address,
            Self::BySentinels(sentinels) => &sentinels.primary,
        }
    }

    /// Returns the address, and the term in which it is valid.
    pub(crate) async fn find(&self) -> Result<(Address, u64), BackendError> {
        match self {
            Self::Fixed(address) => Ok((Address::clone(address), 0)),
            Self::BySentinels(sentinels) => sentinels.primary().await,
        }
    }
}

/// Shows hosts and ports, or the path of a socket.
impl fmt::Display for ServerLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(address) => address.fmt(f),
            Self::BySentinels(sentinels) => sentinels.fmt(f),
        }
    }
}
