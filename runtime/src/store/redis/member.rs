//! A node of a cluster, and where it is.

use std::sync::atomic::AtomicBool;

use super::address::Host;
use super::node::Node;

/// A node of a cluster, and where it is.
pub(super) struct Member {
    pub(super) host: Host,
    pub(super) node: Node,
    /// Whether slots were on their way to it since the nodes were asked last. It need not serve any yet.
    pub(super) is_importer: AtomicBool,
}
