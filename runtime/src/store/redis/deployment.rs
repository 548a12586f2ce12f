//! The servers of a limiter, and the connections to them.

use std::sync::Arc;

use super::cluster::Cluster;
use super::connection::address::Destination;
use super::connection::attempt::{ServerLocation, longest_attempt};
use super::connection::greeting::Mode;
use super::connection::sentinel::Sentinels;
use super::node::Node;
use super::server::Server;
use crate::store::redis_types::Setup;

/// How many servers there are.
#[derive(Debug)]
pub(super) enum Deployment {
    Server(Arc<Node>),
    Cluster(Arc<Cluster>),
}

impl Deployment {
    /// Connects to nothing yet.
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

    /// How often a connection was made to the server that has a key; 0 if that is not known.
    pub(super) fn connections(&self, key: &str) -> u64 {
        match self {
            Self::Server(node) => node.server().connector.connections(),
            Self::Cluster(cluster) => cluster.connections(key),
        }
    }
}
