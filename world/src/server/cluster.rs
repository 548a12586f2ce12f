//! What a node knows of its cluster.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::flavour::Flavour;
use super::refusal::Refusal;
use super::slot::SLOTS;

/// A node of a cluster, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNode {
    /// Its name, of 40 letters.
    pub id: String,
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The name of the primary that it follows, if it is a replica.
    pub follows: Option<String>,
}

/// What a node knows of its cluster: its nodes, and who serves which slot.
#[derive(Clone, Debug)]
pub struct Cluster {
    me: String,
    nodes: Vec<ClusterNode>,
    /// The primary of each slot, by its place among the nodes.
    owners: Vec<Option<usize>>,
    migrating: BTreeMap<u16, String>,
    importing: BTreeMap<u16, String>,
    /// Whether too few nodes are there to serve anything.
    pub is_down: bool,
}

/// What a node is to do with a command on the keys of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Here,
    Refused(Refusal),
}

/// Keys of one command, as far as its slot matters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotKeys {
    pub(crate) slot: u16,
    /// Whether there are several keys.
    pub(crate) are_several: bool,
    pub(crate) existing: usize,
    pub(crate) missing: usize,
}

impl Cluster {
    /// Returns what the node of that name knows of these nodes, none of which serves any slot yet.
    #[must_use]
    pub fn new(me: &str, nodes: Vec<ClusterNode>) -> Self {
        Self {
            me: me.to_owned(),
            nodes,
            owners: vec![None; usize::from(SLOTS)],
            migrating: BTreeMap::new(),
            importing: BTreeMap::new(),
            is_down: false,
        }
    }

    /// Returns the name of this node.
    #[must_use]
    pub fn me(&self) -> &str {
        &self.me
    }

    /// Returns the nodes.
    #[must_use]
    pub fn nodes(&self) -> &[ClusterNode] {
        &self.nodes
    }

    /// Replaces the nodes. Those that stay go on serving their slots.
    pub fn set_nodes(&mut self, nodes: Vec<ClusterNode>) {
        let place = |old: usize| nodes.iter().position(|node| node.id == self.nodes[old].id);
        self.owners = self.owners.iter().map(|owner| owner.and_then(place)).collect();
        self.nodes = nodes;
    }

    /// Gives slots to a node; they are no longer on their way. To an unknown node, it gives them to nobody.
    pub fn assign(&mut self, slots: RangeInclusive<u16>, to: &str) {
        let owner = self.nodes.iter().position(|node| node.id == to);
        for slot in slots.filter(|slot| *slot < SLOTS) {
            self.owners[usize::from(slot)] = owner;
            self.migrating.remove(&slot);
            self.importing.remove(&slot);
        }
    }

    /// Begins to give a slot away: keys that are not here are asked for there.
    pub fn migrate(&mut self, slot: u16, to: &str) {
        self.migrating.insert(slot, to.to_owned());
    }

    /// Begins to take a slot over: who asks finds the keys here that have arrived.
    pub fn import(&mut self, slot: u16, from: &str) {
        self.importing.insert(slot, from.to_owned());
    }

    /// Ends the move of a slot without any change.
    pub fn settle(&mut self, slot: u16) {
        self.migrating.remove(&slot);
        self.importing.remove(&slot);
    }

    /// Returns the node that serves a slot.
    #[must_use]
    pub fn owner(&self, slot: u16) -> Option<&ClusterNode> {
        self.nodes.get((*self.owners.get(usize::from(slot))?)?)
    }

    pub(crate) fn node(&self, id: &str) -> Option<&ClusterNode> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// Returns the slots by their owners: ranges, the lowest first.
    pub(crate) fn ranges(&self) -> Vec<(RangeInclusive<u16>, &ClusterNode)> {
        let mut ranges: Vec<(RangeInclusive<u16>, &ClusterNode)> = Vec::new();
        for slot in 0..SLOTS {
            let Some(owner) = self.owner(slot) else { continue };
            match ranges.last_mut().filter(|(range, last)| last.id == owner.id && *range.end() + 1 == slot) {
                Some((range, _)) => *range = *range.start()..=slot,
                None => ranges.push((slot..=slot, owner)),
            }
        }
        ranges
    }

    /// Whether a slot is being given away or taken over, so that it matters which of its keys are here.
    pub(crate) fn is_moving(&self, slot: u16) -> bool {
        self.migrating.contains_key(&slot) || self.importing.contains_key(&slot)
    }

    /// Finds out who answers a command on such keys. A client that asks may use a slot that is on its way here.
    pub(crate) fn route(&self, flavour: Flavour, keys: SlotKeys, asks: bool, may_read_here: bool) -> Route {
        const UNSTABLE: Refusal = Refusal::known("TRYAGAIN Multiple keys request during rehashing of slot");
        let slot = keys.slot;
        let Some(owner) = self.owner(slot) else {
            return Route::Refused(Refusal::known("CLUSTERDOWN Hash slot not served"));
        };
        if self.is_down {
            return Route::Refused(Refusal::known("CLUSTERDOWN The cluster is down"));
        }
        let is_mine = owner.id == self.me;
        if let Some(to) = self.migrating.get(&slot).filter(|_| is_mine && keys.missing > 0) {
            let is_unstable = keys.existing > 0 && flavour > Flavour::Redis62;
            return Route::Refused(if is_unstable { UNSTABLE } else { self.redirection("ASK", slot, to) });
        }
        if self.importing.contains_key(&slot) && !is_mine && asks {
            let is_unstable = keys.are_several && keys.missing > 0;
            return if is_unstable { Route::Refused(UNSTABLE) } else { Route::Here };
        }
        let follows_owner = || self.node(&self.me).is_some_and(|me| me.follows.as_ref() == Some(&owner.id));
        if is_mine || may_read_here && follows_owner() {
            return Route::Here;
        }
        Route::Refused(self.redirection("MOVED", slot, &owner.id))
    }

    fn redirection(&self, kind: &str, slot: u16, to: &str) -> Refusal {
        let (host, port) = self.node(to).map_or(("", 0), |node| (node.host.as_str(), node.port));
        Refusal::new(format!("{kind} {slot} {host}:{port}"))
    }
}
