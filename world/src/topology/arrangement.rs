//! What all arrangements of servers have in common.

use std::rc::Rc;

use super::node::Node;
use crate::workload::Handover;

/// How the servers of a world are arranged, and what they do when something has changed.
pub(super) trait Arrangement {
    /// What limiters connect to.
    fn url(&self) -> String;

    /// All servers and sentinels.
    fn nodes(&self) -> &[Rc<Node>];

    /// The server that a fault happens to.
    fn node(&self, at: usize) -> Option<Rc<Node>>;

    /// A server decides from here on by less than it had counted, or by another time.
    fn lose(&self, node: &Node, how: &str);

    /// A server has restarted without its keys.
    fn empty(&self, _node: &Node) {}

    /// The replica of a server takes over.
    fn hand_over(&self, _node: &Rc<Node>, _handover: Handover) {}

    /// A slot of a server moves to another one.
    fn move_slot(&self, _node: &Rc<Node>) {}

    /// A server or a link is gone, or back.
    fn changed(&self) {}
}
