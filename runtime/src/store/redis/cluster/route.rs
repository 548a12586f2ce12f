//! The route of a request through a cluster, and the redirects that it follows. A node that redirects has executed
//! nothing.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{ErrorKind, ServerErrorKind};

use super::refresh::Reason;
use super::topology::Topology;
use crate::call::Slot;
use crate::error::{BackendError, BackendErrorKind};
use crate::store::redis::connection::address::Host;
use crate::store::redis::connection::connect::late;
use crate::store::redis::connection::fault::server_error;
use crate::store::redis::node::{ClusterNode, Manner, Step};
use crate::store::redis::script::run::NodeRole;
use crate::system::{Instant, sleep};

/// How many redirects are followed without a pause. After more, the nodes do not agree yet.
const HOPS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The route of a request through a cluster, from node to node while they redirect it.
///
/// A redirect is a refusal, so the request is sent again. A request that may have been executed is never sent again.
pub(crate) struct Route<'a> {
    topology: &'a Arc<Topology>,
    slot: Slot,
    node: Arc<ClusterNode>,
    manner: Manner,
    until: Instant,
    hops: u32,
}

impl<'a> Route<'a> {
    /// Begins at the node that serves the slot.
    pub(crate) async fn to(topology: &'a Arc<Topology>, slot: Slot, until: Instant) -> Result<Self, BackendError> {
        let node = topology.owner(slot, until).await.map_err(BackendError::into_refusal)?;
        Ok(Self { topology, slot, node, manner: Manner::Gathered, until, hops: 0 })
    }

    /// Asks one node after the other while they redirect; returns the answer of the last one.
    pub(crate) async fn ask<T, F>(mut self, ask: impl Fn(Step) -> F) -> Result<T, BackendError>
    where
        F: Future<Output = Result<T, BackendError>>,
    {
        loop {
            let step = Step { node: Arc::clone(&self.node.node), manner: self.manner, until: self.until };
            match ask(step).await {
                Ok(answer) => return Ok(answer),
                Err(error) => self.redirect(error).await?,
            }
        }
    }

    /// Follows a redirect. Any other error is returned.
    async fn redirect(&mut self, error: BackendError) -> Result<(), BackendError> {
        match Redirect::of(&error, &self.node.host) {
            Some(Redirect::Moved(host)) => {
                self.node = self.topology.moved(self.slot, &host)?;
                self.manner = Manner::Gathered;
            }
            // The redirect is about the keys of all gathered requests. Redis 6 even answers `ASK` if only one of them
            // has moved already.
            Some(Redirect::Ask(_) | Redirect::TryAgain) if self.manner == Manner::Gathered => {
                self.manner = Manner::Alone(NodeRole::Owner);
            }
            Some(Redirect::Ask(host)) => {
                self.node = self.topology.importer(&host)?;
                self.manner = Manner::Alone(NodeRole::Importer);
                self.hops += 1;
                // Without a pause, because the key is certainly there only at this moment.
                return self.in_time();
            }
            Some(Redirect::TryAgain) => return Err(error),
            None => match self.replacement(&error).await {
                Some(node) => {
                    self.node = node;
                    self.manner = Manner::Gathered;
                }
                None => return Err(error),
            },
        }
        self.hops += 1;
        self.pause().await
    }

    /// If this node is away or has left the cluster, asks the other nodes which of them serves the slot. Returns that
    /// node if nothing was executed.
    async fn replacement(&self, error: &BackendError) -> Option<Arc<ClusterNode>> {
        let is_away = self.node.node.server().connector.known_outage().is_some();
        if !is_away && error.kind() != BackendErrorKind::Away {
            return None;
        }
        if !error.is_refusal() {
            self.topology.refresh(Reason::Away(&self.node.host));
            return None;
        }
        self.topology.replacement(self.slot, &self.node.host, self.until).await
    }

    /// Waits before another redirect is followed, once there were many.
    async fn pause(&self) -> Result<(), BackendError> {
        self.in_time()?;
        if self.hops > HOPS {
            let doubled = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.hops - HOPS - 1));
            let left = self.until.saturating_duration_since(Instant::now());
            sleep(doubled.min(LONGEST_PAUSE).min(left)).await;
        }
        self.in_time()
    }

    fn in_time(&self) -> Result<(), BackendError> {
        if Instant::now() < self.until { Ok(()) } else { Err(late().into_refusal()) }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// To the owner of the slot, which is another node.
    Moved(Host),
    /// To the node to which the slot moves, only for this request.
    Ask(Host),
    /// Again, in smaller parts: some of its keys have moved, and some have not.
    TryAgain,
}

impl Redirect {
    /// Returns the redirect if the error is one. `asked` is the host of the node that redirects.
    pub(crate) fn of(error: &BackendError, asked: &Host) -> Option<Self> {
        let error = server_error(error)?;
        let host = || asked.redirected(error.redirect_node()?.0);
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::Moved) => host().map(Self::Moved),
            ErrorKind::Server(ServerErrorKind::Ask) => host().map(Self::Ask),
            ErrorKind::Server(ServerErrorKind::TryAgain) => Some(Self::TryAgain),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use ::redis::{RedisError, Value, parse_redis_value};

    use super::*;
    use crate::store::redis::connection::address::Destination;
    use crate::store::redis::connection::fault::answer_error;

    fn host(name: &str, port: u16) -> Host {
        Host { name: name.to_owned(), port }
    }

    fn read(answer: &str) -> Option<Redirect> {
        let Ok(Value::ServerError(error)) = parse_redis_value(format!("-{answer}\r\n").as_bytes()) else {
            panic!("{answer} is no error");
        };
        let destination = Destination::parse("redis+cluster://seed:1").unwrap();
        Redirect::of(&answer_error(destination.address(), &RedisError::from(error)), &host("seed", 1))
    }

    #[test]
    fn a_redirect_names_the_node_to_ask_and_without_a_host_one_on_the_same_host() {
        assert_eq!(read("MOVED 3999 10.0.0.1:6381"), Some(Redirect::Moved(host("10.0.0.1", 6_381))));
        assert_eq!(read("MOVED 3999 :6381"), Some(Redirect::Moved(host("seed", 6_381))));
        assert_eq!(read("ASK 3999 ::1:6381"), Some(Redirect::Ask(host("::1", 6_381))));
        assert_eq!(read("TRYAGAIN Multiple keys request during rehashing of slot"), Some(Redirect::TryAgain));
    }

    #[test]
    fn any_other_error_is_no_redirect() {
        for answer in [
            "MOVED",
            "CLUSTERDOWN Hash slot not served",
            "ASK 3999 nowhere",
            "WRONGTYPE of a key",
            "ERR of some kind",
            "LOADING",
            "CROSSSLOT",
        ] {
            assert_eq!(read(answer), None, "{answer}");
        }
        assert_eq!(Redirect::of(&BackendError::new("redis: no answer within the deadline"), &host("seed", 1)), None);
    }
}
