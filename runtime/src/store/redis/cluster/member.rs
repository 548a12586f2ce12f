//! A node of a cluster, and where it is.

use std::sync::atomic::AtomicBool;

use crate::store::redis::connection::address::Host;
use crate::store::redis::node::Node;

/// A node of a cluster, and where it is.
pub(crate) struct Member {
    pub(crate) host: Host,
    pub(crate) node: Node,
    /// Whether slots were on their way to it since the nodes were asked last. It need not serve any yet.
    pub(crate) is_importer: AtomicBool,
}
