//! The servers of a limiter and the connections to them.

use std::sync::Arc;

use futures_util::future::join_all;

use super::cluster::Cluster;
use super::connection::address::Destination;
use super::connection::attempt::{ServerLocation, longest_attempt};
use super::connection::greeting::Mode;
use super::connection::sentinel::Sentinels;
use super::node::{Node, Step};
use super::server::Server;
use crate::call::{ReturnedLeases, Slot};
use crate::error::BackendError;
use crate::store::redis_types::Setup;
use crate::system::Instant;

#[derive(Clone, Debug)]
pub(super) enum Deployment {
    Server(Arc<Node>),
    Cluster(Arc<Cluster>),
}

impl Deployment {
    /// Does not connect yet.
    pub(super) fn new(destination: Destination, setup: &Setup) -> Self {
        let server = |place| Self::Server(Node::new(Server::new(place, Mode::Standalone, setup)));
        match destination {
            Destination::Server(address) => server(ServerLocation::Fixed(address.into())),
            Destination::Primary { name, sentinels, address } => {
                let sentinels =
                    Sentinels::new(sentinels, address, name, longest_attempt(setup.deadline), setup.driver.clone());
                server(ServerLocation::BySentinels(Arc::new(sentinels)))
            }
            Destination::Cluster { seeds, address } => Self::Cluster(Cluster::new(seeds, address, setup.clone())),
        }
    }

    pub(super) fn setup(&self) -> &Setup {
        match self {
            Self::Server(node) => &node.server().setup,
            Self::Cluster(cluster) => &cluster.setup,
        }
    }

    /// Asks the server of a slot, which nobody asks for where there is only one server.
    pub(super) async fn ask<T, F>(
        &self,
        slot: impl FnOnce(&Cluster) -> Slot,
        until: Instant,
        ask: impl Fn(Step) -> F,
    ) -> Result<T, BackendError>
    where
        F: Future<Output = Result<T, BackendError>>,
    {
        match self {
            Self::Server(node) => ask(Step::new(node, until)).await,
            Self::Cluster(cluster) => cluster.ask(slot(cluster), until, ask).await,
        }
    }

    pub(super) async fn give_back(&self, leases: &[ReturnedLeases], until: Instant) -> Result<(), BackendError> {
        let given_back = leases
            .iter()
            .map(|leases| self.ask(|_| Slot::of(leases.key.as_str()), until, move |step| step.give_back(leases)));
        join_all(given_back).await.into_iter().collect()
    }

    /// How many connections were made to the server that has this key; 0 if unknown.
    pub(super) fn connections(&self, key: &str) -> u64 {
        match self {
            Self::Server(node) => node.server().connector.connections(),
            Self::Cluster(cluster) => cluster.connections(key),
        }
    }
}
