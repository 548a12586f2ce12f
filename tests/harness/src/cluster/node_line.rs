//! What a node knows about the nodes of its cluster.

use crate::server::Server;

/// A line of `CLUSTER NODES`.
pub(super) struct NodeLine {
    pub(super) id: String,
    pub(super) is_master: bool,
    /// Of two masters that claim a slot, the one with the greater epoch has it.
    pub(super) epoch: u64,
    /// The first and the last of each range of slots.
    pub(super) slots: Vec<(u16, u16)>,
}

/// What a node reports about all nodes, except those whose name it does not know yet.
pub(super) fn lines(node: &Server) -> Vec<NodeLine> {
    let text: String = node.ask("CLUSTER NODES");
    text.lines().filter_map(NodeLine::read).collect()
}

impl NodeLine {
    fn read(line: &str) -> Option<Self> {
        let words: Vec<_> = line.split_whitespace().collect();
        let [id, address, flags, _, _, _, epoch, _, slots @ ..] = &words[..] else { return None };
        let is_known = !flags.contains("handshake") && !flags.contains("noaddr") && !address.starts_with(':');
        if !is_known {
            return None;
        }
        Some(Self {
            id: (*id).to_owned(),
            is_master: flags.contains("master") && !flags.contains("fail"),
            epoch: epoch.parse().ok()?,
            slots: slots.iter().filter_map(|range| read_range(range)).collect(),
        })
    }
}

/// Reads `5` or `5-9`. A slot on its way stands in brackets, and is left out.
fn read_range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.parse().ok()?, last.parse().ok()?))
}
