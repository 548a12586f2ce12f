//! A master of a cluster, and the replica that may take its place.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::node::{self, Node, PORT};
use super::replication::Replication;
use crate::server::{ClusterNode, Role};

/// The nodes that have the same slots: the master, and perhaps a replica.
pub(super) struct Shard {
    nodes: Vec<Rc<Node>>,
    master: Cell<usize>,
    /// Whether the node that was replaced was not told yet.
    pub(super) is_other_stale: Cell<bool>,
    /// Since when the other masters miss this one.
    pub(super) missed_since: Cell<Option<u64>>,
    lag_us: u64,
    stream: RefCell<Option<Rc<Replication>>>,
}

impl Shard {
    pub(super) fn start(nodes: Vec<Rc<Node>>, lag_us: u64) -> Self {
        let (master, is_other_stale, missed_since) = (Cell::new(0), Cell::new(false), Cell::new(None));
        Self { nodes, master, is_other_stale, missed_since, lag_us, stream: RefCell::default() }
    }

    pub(super) fn master(&self) -> &Rc<Node> {
        &self.nodes[self.master.get()]
    }

    /// The replica, or what was the master before.
    pub(super) fn other(&self) -> Option<&Rc<Node>> {
        self.nodes.get(1 - self.master.get())
    }

    pub(super) fn has(&self, node: &Node) -> bool {
        self.nodes.iter().any(|own| own.number() == node.number())
    }

    /// What takes the writes of the master to the replica.
    pub(super) fn stream(&self) -> Option<Rc<Replication>> {
        self.stream.borrow().clone()
    }

    /// Whether it decides about the slots of the shard.
    pub(super) fn is_master(&self, node: &Node) -> bool {
        self.master().number() == node.number()
    }

    /// Lets the other node be the master.
    pub(super) fn swap(&self) {
        if let Some(stream) = self.stream.take() {
            stream.end();
        }
        self.master.set(1 - self.master.get());
        self.master().with_server(|server| server.set_role(Role::Primary));
        self.is_other_stale.set(true);
        self.missed_since.set(None);
    }

    /// Lets the other node follow the master.
    pub(super) fn follow(&self) {
        self.is_other_stale.set(false);
        let Some(other) = self.other() else { return };
        let role = Role::Replica { host: node::host(self.master().number()), port: PORT, is_connected: true };
        other.with_server(|server| server.set_role(role));
        other.end_branch();
        *self.stream.borrow_mut() = Some(Replication::begin(self.master(), other, self.lag_us));
    }

    /// Its nodes, as all others see them.
    pub(super) fn roster(&self) -> Vec<ClusterNode> {
        let master = self.master().number();
        let see = |node: &Rc<Node>| ClusterNode {
            id: id(node.number()),
            host: node::host(node.number()),
            port: PORT,
            follows: (node.number() != master).then(|| id(master)),
        };
        self.nodes.iter().map(see).collect()
    }
}

/// The name of a node in its cluster.
pub(super) fn id(number: u32) -> String {
    format!("{:040x}", number + 1)
}
