//! `CLUSTER`: what a node says of its cluster.

use std::ops::RangeInclusive;

use super::arguments::Arguments;
use super::cluster::{Cluster, ClusterNode};
use super::flavour::Flavour;
use super::numbers::integer;
use super::refusal::{Answer, NO_CLUSTER, NO_INTEGER, Refusal, SYNTAX};
use super::reply::Reply;
use super::slot::{SLOTS, slot};
use super::state::State;

pub(crate) fn cluster(state: &mut State, arguments: &Arguments) -> Answer {
    let flavour = state.flavour;
    let subcommand = arguments.text(1).to_ascii_lowercase();
    let Some(cluster) = &mut state.cluster else { return Err(NO_CLUSTER) };
    match subcommand.as_str() {
        "myid" => Ok(Reply::text(cluster.me())),
        "slots" => Ok(slots(cluster, flavour)),
        "shards" => Ok(shards(cluster)),
        "nodes" => Ok(Reply::Verbatim(nodes(cluster))),
        "info" => Ok(Reply::Verbatim(info(cluster))),
        "keyslot" => Ok(Reply::Integer(slot(arguments.word(2)).into())),
        "setslot" => set_slot(cluster, arguments),
        _ => keys_of_slot(state, arguments),
    }
}

/// `COUNTKEYSINSLOT` and `GETKEYSINSLOT`.
fn keys_of_slot(state: &mut State, arguments: &Arguments) -> Answer {
    let wanted = read_slot(arguments.word(2))?;
    let most = if arguments.is(1, "getkeysinslot") { integer(arguments.word(3)).ok_or(NO_INTEGER)? } else { i64::MAX };
    let most = usize::try_from(most).map_err(|_| Refusal::known("ERR Invalid number of keys"))?;
    let keys = state.keyspace().iter().filter(|(key, _)| slot(key) == wanted).take(most);
    Ok(if arguments.is(1, "getkeysinslot") {
        Reply::array(keys.map(|(key, _)| Reply::text(key)))
    } else {
        Reply::count(keys.count())
    })
}

fn read_slot(text: &[u8]) -> Result<u16, Refusal> {
    let slot = integer(text).and_then(|number| u16::try_from(number).ok()).filter(|slot| *slot < SLOTS);
    slot.ok_or_else(|| Refusal::known("ERR Invalid or out of range slot"))
}

fn set_slot(cluster: &mut Cluster, arguments: &Arguments) -> Answer {
    let (slot, node) = (read_slot(arguments.word(2))?, arguments.text(4));
    let is_mine = cluster.owner(slot).is_some_and(|owner| owner.id == cluster.me());
    let is_known = cluster.node(&node).is_some();
    let unknown = || Refusal::new(format!("ERR I don't know about node {node}"));
    match arguments.text(3).to_ascii_lowercase().as_str() {
        "migrating" if !is_mine => {
            return Err(Refusal::new(format!("ERR I'm not the owner of hash slot {slot}")));
        }
        "importing" if is_mine => {
            return Err(Refusal::new(format!("ERR I'm already the owner of hash slot {slot}")));
        }
        "migrating" | "importing" | "node" if !is_known => return Err(unknown()),
        "migrating" => cluster.migrate(slot, &node),
        "importing" => cluster.import(slot, &node),
        "node" => cluster.assign(slot..=slot, &node),
        "stable" => cluster.settle(slot),
        _ => return Err(SYNTAX),
    }
    Ok(Reply::OK)
}

fn replicas<'a>(cluster: &'a Cluster, of: &'a ClusterNode) -> impl Iterator<Item = &'a ClusterNode> {
    cluster.nodes().iter().filter(|node| node.follows.as_ref() == Some(&of.id))
}

fn slots(cluster: &Cluster, flavour: Flavour) -> Reply {
    let place = |node: &ClusterNode| {
        let known = [Reply::text(&node.host), Reply::Integer(node.port.into()), Reply::text(&node.id)];
        let more = (flavour > Flavour::Redis62).then(|| Reply::Array(Vec::new()));
        Reply::array(known.into_iter().chain(more))
    };
    Reply::array(cluster.ranges().into_iter().map(|(range, owner)| {
        let ends = [*range.start(), *range.end()].map(|slot| Reply::Integer(slot.into()));
        Reply::array(ends.into_iter().chain([place(owner)]).chain(replicas(cluster, owner).map(place)))
    }))
}

fn shards(cluster: &Cluster) -> Reply {
    let text = |name: &str| Reply::text(name);
    let node = |node: &ClusterNode| {
        let role = if node.follows.is_some() { "replica" } else { "master" };
        Reply::Map(vec![
            (text("id"), text(&node.id)),
            (text("port"), Reply::Integer(node.port.into())),
            (text("ip"), text(&node.host)),
            (text("endpoint"), text(&node.host)),
            (text("role"), text(role)),
            (text("replication-offset"), Reply::Integer(0)),
            (text("health"), text("online")),
        ])
    };
    let primaries = cluster.nodes().iter().filter(|node| node.follows.is_none());
    Reply::array(primaries.map(|primary| {
        let ends = ranges_of(cluster, primary).into_iter().flat_map(|range| [*range.start(), *range.end()]);
        let slots = Reply::array(ends.map(|slot| Reply::Integer(slot.into())));
        let nodes = [primary].into_iter().chain(replicas(cluster, primary)).map(node);
        Reply::Map(vec![(text("slots"), slots), (text("nodes"), Reply::array(nodes))])
    }))
}

fn ranges_of(cluster: &Cluster, node: &ClusterNode) -> Vec<RangeInclusive<u16>> {
    cluster.ranges().into_iter().filter(|(_, owner)| owner.id == node.id).map(|(range, _)| range).collect()
}

fn nodes(cluster: &Cluster) -> String {
    let line = |node: &ClusterNode| {
        let me = if node.id == cluster.me() { "myself," } else { "" };
        let (role, follows) = node.follows.as_ref().map_or(("master", "-"), |primary| ("slave", primary.as_str()));
        let ranges: Vec<_> = ranges_of(cluster, node).iter().map(range_text).collect();
        let ClusterNode { id, host, port, .. } = node;
        let line =
            format!("{id} {host}:{port}@{} {me}{role} {follows} 0 0 1 connected {}", port + 10_000, ranges.join(" "));
        line.trim_end().to_owned() + "\n"
    };
    cluster.nodes().iter().map(line).collect()
}

fn range_text(range: &RangeInclusive<u16>) -> String {
    let (first, last) = (range.start(), range.end());
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

fn info(cluster: &Cluster) -> String {
    let assigned: usize = cluster.ranges().iter().map(|(range, _)| range.len()).sum();
    let state = if cluster.is_down || assigned < usize::from(SLOTS) { "fail" } else { "ok" };
    let owners: Vec<_> = cluster.nodes().iter().filter(|node| !ranges_of(cluster, node).is_empty()).collect();
    format!(
        "cluster_state:{state}\r\ncluster_slots_assigned:{assigned}\r\ncluster_known_nodes:{}\r\ncluster_size:{}\r\n",
        cluster.nodes().len(),
        owners.len()
    )
}
