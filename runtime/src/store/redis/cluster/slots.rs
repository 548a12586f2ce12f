//! The nodes that serve the slots of a cluster.

use std::collections::HashSet;

use ::redis::Value;

use crate::call::{SLOTS, Slot};
use crate::store::redis::connection::address::Host;

/// The most nodes of a cluster: Redis recommends at most a thousand. A map lists a node once for each range of its
/// slots.
pub(crate) const MOST_NODES: usize = 2_000;
const MOST_ENTRIES: usize = 64 * 1024;

pub(crate) struct SlotMap<N> {
    owners: Box<[Option<N>]>,
}

impl<N: Clone> SlotMap<N> {
    pub(crate) fn new() -> Self {
        Self { owners: vec![None; usize::from(SLOTS)].into() }
    }

    pub(crate) fn owner(&self, slot: Slot) -> Option<&N> {
        self.owners.get(usize::from(slot.0))?.as_ref()
    }

    /// Returns the node of each slot that is served. A node comes once for each of its slots.
    pub(crate) fn owners(&self) -> impl Iterator<Item = &N> {
        self.owners.iter().flatten()
    }

    pub(crate) fn set(&mut self, slot: Slot, owner: N) {
        if let Some(place) = self.owners.get_mut(usize::from(slot.0)) {
            *place = Some(owner);
        }
    }

    pub(crate) fn set_range(&mut self, range: &SlotRange, owner: &N) {
        if let Some(places) = self.owners.get_mut(usize::from(range.first)..=usize::from(range.last)) {
            places.fill(Some(owner.clone()));
        }
    }
}

/// A range of slots that one primary serves.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SlotRange {
    first: u16,
    last: u16,
    /// The primary comes first.
    pub(crate) nodes: Vec<Host>,
}

impl SlotRange {
    /// Reads the answer to `CLUSTER SLOTS`; `None` if it is malformed, or has more ranges than there are slots or more
    /// nodes than any cluster. `asked` is the host of the node that answered.
    pub(crate) fn read_all(answer: &Value, asked: &Host) -> Option<Vec<Self>> {
        let Value::Array(ranges) = answer else { return None };
        if ranges.len() > usize::from(SLOTS) {
            return None;
        }
        let mut hosts = HashSet::new();
        let mut nodes = 0;
        let read = |range| {
            let range = Self::read(range, asked)?;
            nodes += range.nodes.len();
            hosts.extend(range.nodes.iter().cloned());
            (hosts.len() <= MOST_NODES && nodes <= MOST_ENTRIES).then_some(range)
        };
        ranges.iter().map(read).collect()
    }

    fn read(range: &Value, asked: &Host) -> Option<Self> {
        let Value::Array(fields) = range else { return None };
        let [first, last, nodes @ ..] = &fields[..] else { return None };
        let nodes: Vec<_> = nodes.iter().map(|node| read_node(node, asked)).collect::<Option<_>>()?;
        let (first, last) = (read_slot(first)?, read_slot(last)?);
        (first <= last && !nodes.is_empty()).then_some(Self { first, last, nodes })
    }
}

fn read_slot(value: &Value) -> Option<u16> {
    let Value::Int(slot) = value else { return None };
    u16::try_from(*slot).ok().filter(|&slot| slot < SLOTS)
}

fn read_node(node: &Value, asked: &Host) -> Option<Host> {
    let Value::Array(fields) = node else { return None };
    let [name, Value::Int(port), ..] = &fields[..] else { return None };
    let name = match name {
        Value::Nil => "",
        Value::BulkString(name) => str::from_utf8(name).ok()?,
        Value::SimpleString(name) => name,
        _ => return None,
    };
    asked.announced(name, u16::try_from(*port).ok()?)
}

impl Host {
    /// Returns the host that this node announces. If the name is missing, it is that of this node.
    fn announced(&self, name: &str, port: u16) -> Option<Self> {
        Self::named(if matches!(name, "" | "?") { &self.name } else { name }, port)
    }

    /// Reads the host and port of a redirect by this node.
    pub(crate) fn redirected(&self, text: &str) -> Option<Self> {
        let (name, port) = text.rsplit_once(':')?;
        self.announced(name, port.parse().ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, port: u16) -> Host {
        Host { name: name.to_owned(), port }
    }

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn node(name: Value, port: i64) -> Value {
        Value::Array(vec![name, Value::Int(port), bulk("id"), Value::Array(vec![])])
    }

    fn range(first: i64, last: i64, nodes: Vec<Value>) -> Value {
        Value::Array([vec![Value::Int(first), Value::Int(last)], nodes].concat())
    }

    #[test]
    fn a_map_is_read_with_its_replicas_and_hosts_without_a_name_are_the_one_that_was_asked() {
        let ranges = vec![
            range(0, 9, vec![node(bulk("10.0.0.1"), 7_001), node(bulk("10.0.0.2"), 7_002)]),
            range(10, 10, vec![node(bulk(""), 7_003), node(bulk("?"), 7_004), node(Value::Nil, 7_005)]),
        ];
        let read = SlotRange::read_all(&Value::Array(ranges), &host("seed", 1)).unwrap();
        let expected = [
            SlotRange { first: 0, last: 9, nodes: vec![host("10.0.0.1", 7_001), host("10.0.0.2", 7_002)] },
            SlotRange { first: 10, last: 10, nodes: [7_003, 7_004, 7_005].map(|port| host("seed", port)).into() },
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn an_answer_of_another_shape_is_no_map() {
        let good = || vec![node(bulk("a"), 1)];
        for broken in [
            Value::Nil,
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![range(0, 16_384, good())]),
            Value::Array(vec![range(-1, 5, good())]),
            Value::Array(vec![range(5, 4, good())]),
            Value::Array(vec![range(0, 5, vec![])]),
            Value::Array(vec![range(0, 5, vec![node(Value::Int(1), 1)])]),
            Value::Array(vec![range(0, 5, vec![node(bulk("a"), 70_000)])]),
        ] {
            assert!(SlotRange::read_all(&broken, &host("seed", 1)).is_none(), "{broken:?}");
        }
    }

    #[test]
    fn a_map_has_as_many_nodes_and_ranges_as_a_cluster_may_have() {
        let map = |nodes: i64| {
            let one = |at: i64| range(at, at, vec![node(bulk(&format!("h{at}")), 1)]);
            SlotRange::read_all(&Value::Array((0..nodes).map(one).collect()), &host("seed", 1))
        };
        let most = i64::try_from(MOST_NODES).unwrap();
        assert!(map(most).is_some() && map(most + 1).is_none());
        let ranges = |number: usize| {
            SlotRange::read_all(&Value::Array(vec![range(0, 5, vec![node(bulk("h"), 1)]); number]), &host("seed", 1))
        };
        assert!(ranges(16_384).is_some() && ranges(16_385).is_none());
        for name in ["", "a b", "a\u{1b}[2J", "{a}", &"a".repeat(254)] {
            assert_eq!(Host::named(name, 1), None, "{name}");
        }
        for name in ["redis-0.redis.svc", "::1", "fe80::1%eth0", &"a".repeat(253)] {
            assert!(Host::named(name, 1).is_some(), "{name}");
        }
    }

    #[test]
    fn a_redirect_names_a_host_or_means_the_one_that_was_asked() {
        let asked = host("seed", 1);
        assert_eq!(asked.redirected("10.0.0.1:7001"), Some(host("10.0.0.1", 7_001)));
        assert_eq!(asked.redirected("2001:db8::1:7001"), Some(host("2001:db8::1", 7_001)));
        assert_eq!(asked.redirected(":7001"), Some(host("seed", 7_001)));
        assert_eq!(asked.redirected("?:7001"), Some(host("seed", 7_001)));
        assert_eq!((asked.redirected("7001"), asked.redirected("a:b")), (None, None));
    }

    #[test]
    fn a_slot_is_served_by_the_node_that_was_set_last() {
        let mut map = SlotMap::new();
        assert_eq!(map.owner(Slot(7)), None);
        map.set_range(&SlotRange { first: 0, last: 16_383, nodes: vec![] }, &'a');
        map.set_range(&SlotRange { first: 7, last: 8, nodes: vec![] }, &'b');
        map.set(Slot(8), 'c');
        assert_eq!(
            [6, 7, 8, 9, 16_383].map(|slot| map.owner(Slot(slot)).copied()),
            ['a', 'b', 'c', 'a', 'a'].map(Some)
        );
    }
}
