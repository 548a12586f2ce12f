//! One attempt to connect to a server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Cmd, Value, cmd};
use futures_util::FutureExt as _;
use futures_util::future::join;

use super::address::Address;
use super::diagnosis::LONGEST_DIAGNOSIS;
use super::fault::{self, Fault};
use super::greeting::{Greeting, Mode};
use super::link::{Link, Pushes};
use super::real_time;
use super::sentinel::Sentinels;
use crate::error::BackendError;
use crate::system::{Instant, JoinSet, open};

/// The longest that an attempt takes, unless callers wait longer than that.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(1);

/// Where to connect to, and what to ask there first.
#[derive(Clone)]
pub(crate) struct ConnectTarget {
    pub(crate) location: ServerLocation,
    /// What kind of server is to be there.
    pub(crate) mode: Mode,
    /// A question that a server answers with an error if another one has become the primary. It changes nothing.
    pub(crate) probe: Cmd,
    /// The longest that an attempt takes.
    pub(crate) longest: Duration,
}

/// Returns the longest that an attempt takes for callers with that deadline.
pub(crate) fn longest_attempt(deadline: Duration) -> Duration {
    deadline.max(LONGEST_ATTEMPT)
}

/// Returns the longest until such an attempt has failed, and it is known why.
pub(crate) fn longest_explained(deadline: Duration) -> Duration {
    longest_attempt(deadline) + LONGEST_DIAGNOSIS
}

impl ConnectTarget {
    /// When an attempt that begins now has ended, and it is known why.
    pub(crate) fn ends(&self) -> Instant {
        let connecting = self.longest + LONGEST_DIAGNOSIS;
        let finding = if self.location.is_known() { Duration::ZERO } else { connecting };
        Instant::now() + finding + connecting
    }

    /// Finds out where the server is.
    pub(crate) async fn find(&self) -> Result<(Address, u64), BackendError> {
        let until = Instant::now() + self.longest + LONGEST_DIAGNOSIS;
        let found = real_time::wait_until(until, self.location.find()).await;
        found.unwrap_or_else(|| Err(BackendError::away(format!("redis: nobody says where to find {}", self.location))))
    }

    /// Connects, and returns the connection once the server has answered over it. `on_hang_up` is called when the server
    /// closes it.
    pub(crate) async fn connect(
        self,
        address: Address,
        on_hang_up: impl FnOnce() + Send + 'static,
    ) -> Result<Link, BackendError> {
        // In a task of its own: the client library may panic, for want of a provider of cryptography, and nobody could
        // connect again.
        let mut attempt = JoinSet::new();
        attempt.spawn(self.attempt(address, on_hang_up).boxed());
        match attempt.join_next().await {
            Some(Ok(outcome)) => outcome,
            _ => Err(BackendError::new("redis: the attempt to connect panicked")),
        }
    }

    async fn attempt(self, address: Address, on_hang_up: impl FnOnce() + Send + 'static) -> Result<Link, BackendError> {
        real_time::compare_clocks();
        let pushes = Pushes::new();
        let config = AsyncConnectionConfig::new()
            // The timeout below covers the greeting too.
            .set_connection_timeout(None)
            // The caller's deadline covers the response too.
            .set_response_timeout(None)
            .set_push_sender(pushes.sender());
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

    /// Finds out whether the server answers, is of the kind that the address is for, and is the primary: no call has to wait
    /// to learn that.
    async fn prove(&self, address: &Address, connection: &mut MultiplexedConnection) -> Result<(), BackendError> {
        // The client library has sent a greeting, and keeps the answer to itself.
        let (hello, mut another) = (cmd("HELLO"), connection.clone());
        let (greeting, probed) =
            join(hello.query_async(connection), self.probe.query_async::<Value>(&mut another)).await;
        let greeting = Greeting::read(greeting);
        greeting.check_mode(self.mode, address)?;
        match probed {
            Err(error) if Fault::of(&error).spoils_connection() => Err(fault::attempt_error(address, &error).await),
            // The server answers. What else it refuses, it may not refuse the next call.
            _ => greeting.check_role(self.mode, address),
        }
    }
}

/// Where a server is: at an address, or where the sentinels say.
#[derive(Clone)]
pub(crate) enum ServerLocation {
    Fixed(Box<Address>),
    BySentinels(Arc<Sentinels>),
}

impl ServerLocation {
    /// Changes when the server is somewhere else.
    pub(crate) fn term(&self) -> u64 {
        match self {
            Self::Fixed(_) => 0,
            Self::BySentinels(sentinels) => sentinels.term(),
        }
    }

    /// Whether nobody has to be asked where it is.
    pub(crate) fn is_known(&self) -> bool {
        matches!(self, Self::Fixed(_))
    }

    /// The address, as far as it is known before the server is found.
    pub(crate) fn address(&self) -> &Address {
        match self {
            Self::Fixed(address) => address,
            Self::BySentinels(sentinels) => &sentinels.primary,
        }
    }

    /// Returns the address, and the term for which it holds.
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
