//! The nodes of a cluster and the slots that they serve, as far as this process knows.
//!
//! A redirect corrects one slot. To learn about the others, any node is asked, because a node that is away cannot say
//! which one has taken its place.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use super::refresh::{Reason, Refresh, first_answer};
use super::slots::{MOST_NODES, SlotMap, SlotRange};
use crate::call::{SLOTS, Slot};
use crate::error::BackendError;
use crate::lock::{lock, read, write};
use crate::observe::{LineBudget, report};
use crate::store::redis::connection::address::{Address, Host, ShortList};
use crate::store::redis::connection::attempt::{ServerLocation, longest_explained};
use crate::store::redis::connection::greeting::Mode;
use crate::store::redis::node::{ClusterNode, Node};
use crate::store::redis::server::Server;
use crate::store::redis_types::Setup;
use crate::system::home::in_runtime;
use crate::system::{Instant, shuffle};

/// The most nodes that are known at once: those of the map before, and those of the new map.
const MOST_MEMBERS: usize = 2 * MOST_NODES;

/// The most nodes that are asked for a map, without the seeds.
const MOST_ASKED: usize = 32;

const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) struct Topology {
    seeds: Vec<Host>,
    /// The address of a seed. The other nodes have the same login and settings.
    address: Address,
    setup: Setup,
    known: RwLock<Known>,
    refresh: Mutex<Option<Refresh>>,
    /// Whether it was reported that no node answers.
    is_reported: AtomicBool,
    lines: LineBudget,
}

struct Known {
    slots: SlotMap<Arc<ClusterNode>>,
    members: BTreeMap<Host, Arc<ClusterNode>>,
    is_empty: bool,
}

impl Topology {
    pub(crate) fn new(seeds: Vec<Host>, address: Address, setup: Setup) -> Arc<Self> {
        let known = RwLock::new(Known { slots: SlotMap::new(), members: BTreeMap::new(), is_empty: true });
        Arc::new(Self {
            seeds,
            address,
            setup,
            known,
            refresh: Mutex::default(),
            is_reported: AtomicBool::new(false),
            lines: LineBudget::default(),
        })
    }

    /// Returns the node that serves a slot. The first caller waits for a map.
    pub(crate) async fn owner(self: &Arc<Self>, slot: Slot, until: Instant) -> Result<Arc<ClusterNode>, BackendError> {
        in_runtime()?;
        if let Some(owner) = self.known_owner(slot) {
            return Ok(owner);
        }
        if read(&self.known).is_empty {
            self.await_refresh(until).await?;
        } else {
            self.refresh(Reason::Moved);
        }
        self.known_owner(slot).ok_or_else(|| BackendError::away("redis: no node of the cluster serves the slot"))
    }

    /// Waits until a map is known. If no node serves some of its slots, asks for another map in the background.
    pub(crate) async fn learn(self: &Arc<Self>, until: Instant) -> Result<(), BackendError> {
        in_runtime()?;
        let served = read(&self.known).slots.owners().count();
        match served {
            0 => return self.await_refresh(until).await,
            served if served < usize::from(SLOTS) => _ = self.refresh(Reason::Moved),
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn known_owner(&self, slot: Slot) -> Option<Arc<ClusterNode>> {
        read(&self.known).slots.owner(slot).cloned()
    }

    /// Returns the nodes that serve slots, and how many slots each serves.
    pub(crate) fn primaries(&self) -> Vec<(Arc<ClusterNode>, u16)> {
        let known = read(&self.known);
        let mut primaries: Vec<(Arc<ClusterNode>, u16)> = Vec::new();
        let mut places = HashMap::new();
        for owner in known.slots.owners() {
            let place = *places.entry(Arc::as_ptr(owner)).or_insert(primaries.len());
            match primaries.get_mut(place) {
                Some((_, slots)) => *slots += 1,
                None => primaries.push((Arc::clone(owner), 1)),
            }
        }
        primaries
    }

    /// Returns the node at this host, a new one if it is not known.
    fn member(&self, host: &Host) -> Result<Arc<ClusterNode>, BackendError> {
        if let Some(member) = read(&self.known).members.get(host) {
            return Ok(Arc::clone(member));
        }
        let address = if self.seeds.contains(host) { self.address.at(host) } else { self.address.at_node(host) };
        let address = address.map_err(|error| BackendError::new(error.to_string()))?;
        let server = Server::new(ServerLocation::Fixed(address.into()), Mode::Cluster, &self.setup);
        let is_importer = AtomicBool::new(false);
        let member = || Arc::new(ClusterNode { host: host.clone(), node: Node::new(server), is_importer });
        let mut known = write(&self.known);
        if known.members.len() >= MOST_MEMBERS && !known.members.contains_key(host) {
            return Err(BackendError::away("redis: the nodes of the cluster name more and more other nodes"));
        }
        Ok(Arc::clone(known.members.entry(host.clone()).or_insert_with(member)))
    }

    /// Returns the node at this host, and notes that a slot moves to it.
    pub(crate) fn importer(&self, host: &Host) -> Result<Arc<ClusterNode>, BackendError> {
        let member = self.member(host)?;
        member.is_importer.store(true, Ordering::Relaxed);
        Ok(member)
    }

    /// Notes that the node at this host serves a slot, and returns the node.
    pub(crate) fn moved(self: &Arc<Self>, slot: Slot, host: &Host) -> Result<Arc<ClusterNode>, BackendError> {
        let owner = self.member(host)?;
        write(&self.known).slots.set(slot, Arc::clone(&owner));
        self.refresh(Reason::Moved);
        Ok(owner)
    }

    /// Asks the nodes which slots they serve, and waits for the answer.
    pub(crate) async fn await_refresh(self: &Arc<Self>, until: Instant) -> Result<(), BackendError> {
        in_runtime()?;
        self.refresh(Reason::Start).outcome(until).await.ok_or_else(|| self.late())?
    }

    fn late(&self) -> BackendError {
        let text =
            format!("redis: no answer within the deadline from a node of the cluster, of {}", ShortList(&self.seeds));
        BackendError::away(text)
    }

    /// How long a node may take to answer. At the start, it has to be connected to, too.
    fn patience(&self) -> Duration {
        if read(&self.known).is_empty { longest_explained(self.setup.deadline) } else { PATIENCE }
    }

    /// Asks the other nodes which of them serves a slot in place of a node that is away.
    pub(crate) async fn replacement(
        self: &Arc<Self>,
        slot: Slot,
        away: &Host,
        until: Instant,
    ) -> Option<Arc<ClusterNode>> {
        let refresh = self.refresh(Reason::Away(away));
        // If all nodes are away, finding that out takes longer than calls should wait.
        if refresh.has_just_begun() {
            refresh.outcome(until).await;
        }
        self.known_owner(slot).filter(|owner| owner.host != *away)
    }

    /// Asks the nodes which slots they serve, unless they were asked a moment ago.
    pub(crate) fn refresh(self: &Arc<Self>, reason: Reason<'_>) -> Refresh {
        let mut refresh = lock(&self.refresh);
        let now = Instant::now();
        if let Some(latest) = refresh.as_ref().filter(|latest| latest.is_enough(reason, now)) {
            return latest.clone();
        }
        let (done, begun) = Refresh::begin(now);
        *refresh = Some(begun.clone());
        drop(refresh);
        let (candidates, patience) = (self.candidates(reason), self.patience());
        let topology = Arc::clone(self);
        self.setup.driver.spawn(async move {
            let asked = first_answer(candidates, patience).await.and_then(|ranges| topology.adopt(&ranges));
            topology.report(asked.as_ref().err());
            done.send_replace(Some(asked));
        });
        begun
    }

    /// Reports the start and the end of an outage once.
    fn report(&self, error: Option<&BackendError>) {
        const AWAY: &str = "no node of the redis cluster says which slots the nodes serve; asking again until one does";
        const BACK: &str = "a node of the redis cluster says again which slots the nodes serve";
        let was_reported = self.is_reported.swap(error.is_some(), Ordering::Relaxed);
        match error {
            Some(error) if !was_reported => {
                let error = error.clone();
                self.lines.report(|| report(move || tracing::warn!(%error, "{AWAY}")));
            }
            None if was_reported => self.lines.report(|| report(|| tracing::info!("{BACK}"))),
            _ => {}
        }
    }

    /// The nodes to ask, in random order: the seeds come after others, and a node that is away comes last.
    fn candidates(&self, reason: Reason<'_>) -> Vec<Arc<ClusterNode>> {
        let mut hosts: Vec<_> = read(&self.known).members.keys().cloned().collect();
        shuffle(&mut hosts);
        hosts.truncate(MOST_ASKED);
        hosts.extend(self.seeds.iter().cloned());
        if let Reason::Away(away) = reason {
            hosts.sort_by_key(|host| host == away);
        }
        let mut seen = HashSet::new();
        hosts.into_iter().filter(|host| seen.insert(host.clone())).filter_map(|host| self.member(&host).ok()).collect()
    }

    /// Replaces the map. Nodes that are not in it are forgotten with their connections, unless slots move to them.
    fn adopt(&self, ranges: &[SlotRange]) -> Result<(), BackendError> {
        let hosts: HashSet<_> = ranges.iter().flat_map(|range| &range.nodes).collect();
        write(&self.known).members.retain(|host, member| {
            let was_importer = member.is_importer.swap(false, Ordering::Relaxed);
            was_importer || hosts.contains(host)
        });
        let mut slots = SlotMap::new();
        for range in ranges {
            if let Some(primary) = range.nodes.first() {
                slots.set_range(range, &self.member(primary)?);
            }
        }
        let mut known = write(&self.known);
        known.slots = slots;
        known.is_empty = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ::redis::Value;

    use super::*;
    use crate::clock::Clock;
    use crate::store::redis::connection::address::Destination;
    use crate::system::home::Driver;

    fn host(port: u16) -> Host {
        Host { name: "127.0.0.1".to_owned(), port }
    }

    /// Returns a topology of one node that serves all slots, and the map that this node answers.
    fn of_one_node() -> (Arc<Topology>, Vec<SlotRange>) {
        let Ok(Destination::Cluster { seeds, address }) = Destination::parse("redis+cluster://127.0.0.1:1/") else {
            panic!("it is the address of a cluster");
        };
        let setup = Setup {
            prefix: "p".to_owned(),
            deadline: Duration::from_secs(1),
            clock: Clock::tokio(),
            looks_only: false,
            driver: Driver::home(),
        };
        let node = Value::Array(vec![Value::BulkString(b"127.0.0.1".to_vec()), Value::Int(1)]);
        let all = Value::Array(vec![Value::Array(vec![Value::Int(0), Value::Int(16_383), node])]);
        let ranges = SlotRange::read_all(&all, &host(1)).unwrap();
        (Topology::new(seeds, address, setup), ranges)
    }

    #[test]
    fn a_node_is_kept_while_slots_are_on_their_way_to_it_and_forgotten_afterwards() {
        let (topology, ranges) = of_one_node();
        let importer = topology.importer(&host(2)).unwrap();
        topology.adopt(&ranges).unwrap();
        assert!(Arc::ptr_eq(&importer, &topology.importer(&host(2)).unwrap()));
        topology.adopt(&ranges).unwrap();
        topology.adopt(&ranges).unwrap();
        assert!(!read(&topology.known).members.contains_key(&host(2)));
        assert!(read(&topology.known).members.contains_key(&host(1)));
    }

    #[test]
    fn nodes_that_others_name_are_bounded_and_a_map_of_the_cluster_makes_room() {
        let (topology, ranges) = of_one_node();
        let named = (1..=u16::MAX).map(|port| topology.importer(&host(port))).take_while(Result::is_ok).count();
        assert_eq!(named, MOST_MEMBERS);
        // Nodes to which slots may move are kept for one more map.
        for _ in 0..2 {
            topology.adopt(&ranges).unwrap();
        }
        assert_eq!(read(&topology.known).members.len(), 1);
        assert!(topology.importer(&host(2)).is_ok());
    }
}
