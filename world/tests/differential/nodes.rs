//! Nodes of a cluster.

use tallygate_harness::cluster::{Cluster as RealCluster, SLOTS};
use tallygate_harness::server::Server;
use tallygate_world::server::{Cluster, ClusterNode, Role, slot};

use crate::twin::Twin;

/// A key, another one of its slot, and one of another slot.
const KEY: &str = "{a}1";
const BESIDE: &str = "{a}2";
const ELSEWHERE: &str = "{b}1";

fn tried() -> Vec<String> {
    let two = "return { redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2]) }";
    let undeclared = format!("return redis.call('GET', '{ELSEWHERE}')");
    [
        format!("GET {KEY}"),
        format!("SET {ELSEWHERE} 1"),
        format!("EXISTS {KEY} {BESIDE}"),
        format!("DEL {KEY}3 {BESIDE}3"),
        format!("UNLINK {KEY} {ELSEWHERE}"),
        format!("EVAL \"{two}\" 2 {KEY} {BESIDE}"),
        format!("EVAL \"{two}\" 2 {KEY} {ELSEWHERE}"),
        format!("EVAL \"return redis.pcall('SET', KEYS[1], 1)\" 1 {KEY}"),
        format!("EVAL \"{undeclared}\" 0"),
        format!("EVAL \"{undeclared}\" 1 {KEY}"),
        "EVAL \"return 1\" 0".to_owned(),
        format!("EVALSHA 0000000000000000000000000000000000000000 1 {KEY}"),
        format!("ASKING && GET {KEY} && GET {KEY}"),
        format!("ASKING && EXISTS {KEY} {BESIDE}"),
        format!("ASKING && PING && GET {KEY}"),
        format!("ASKING && EVALSHA 0000000000000000000000000000000000000000 1 {KEY} && GET {KEY}"),
        format!("ASKING && EVAL \"{two}\" 2 {KEY} {BESIDE}"),
        "SELECT 1".to_owned(),
        "HELLO 2".to_owned(),
        "CLUSTER MYID".to_owned(),
        "CLUSTER SLOTS".to_owned(),
        format!("CLUSTER KEYSLOT {KEY}"),
        "CLUSTER WHAT".to_owned(),
    ]
    .to_vec()
}

/// What a node of the world knows of a real cluster.
fn known(cluster: &RealCluster, node: &Server) -> Cluster {
    let id = |node: &Server| node.ask::<String>("CLUSTER MYID");
    let primary = |index: usize| (index >= 3).then(|| id(&cluster.masters()[index - 3]));
    let nodes = cluster.nodes().enumerate().map(|(index, node)| ClusterNode {
        id: id(node),
        host: "127.0.0.1".to_owned(),
        port: node.port(),
        follows: primary(index),
    });
    let mut known = Cluster::new(&id(node), nodes.collect());
    for (index, master) in cluster.masters().iter().enumerate() {
        let [first, end] = [index, index + 1].map(|share| u16::try_from(usize::from(SLOTS) * share / 3).unwrap());
        known.assign(first..=end - 1, &id(master));
    }
    known
}

fn agree(twin: &mut Twin) {
    let tried = tried();
    twin.agree(&tried.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn nodes_of_a_cluster_answer_the_same_while_a_slot_moves() {
    let cluster = RealCluster::start();
    let moving = slot(KEY.as_bytes());
    assert_eq!(moving, cluster.slot_of(KEY));
    let from = cluster.owner(moving);
    let to = cluster.masters().iter().find(|master| master.port() != from.port()).unwrap();
    let (mut giver, mut taker) = (Twin::of(from), Twin::of(to));
    giver.world.set_cluster(Some(known(&cluster, from)));
    taker.world.set_cluster(Some(known(&cluster, to)));
    let [from_id, to_id] = [from, to].map(|node| node.ask::<String>("CLUSTER MYID"));
    giver.agree(&[&format!("SET {KEY} 1"), &format!("SET {BESIDE} 2")]);
    [&mut giver, &mut taker].into_iter().for_each(agree);

    cluster.begin_move(moving, to);
    giver.world.cluster_mut().unwrap().migrate(moving, &to_id);
    taker.world.cluster_mut().unwrap().import(moving, &from_id);
    [&mut giver, &mut taker].into_iter().for_each(agree);

    RealCluster::move_key(from, KEY, to);
    giver.world.set_cluster(None);
    giver.settle(&[&format!("DEL {KEY}")]);
    giver.world.set_cluster(Some(known(&cluster, from)));
    giver.world.cluster_mut().unwrap().migrate(moving, &to_id);
    taker.world.set_cluster(None);
    taker.settle(&[&format!("SET {KEY} 1")]);
    taker.world.set_cluster(Some(known(&cluster, to)));
    taker.world.cluster_mut().unwrap().import(moving, &from_id);
    [&mut giver, &mut taker].into_iter().for_each(agree);

    cluster.move_keys(moving, to);
    let bytes = giver.world.take_keys(moving, usize::MAX);
    taker.world.put_keys(&bytes);
    cluster.end_move(moving, to);
    for world in [&mut giver.world, &mut taker.world] {
        world.cluster_mut().unwrap().assign(moving..=moving, &to_id);
    }
    [&mut giver, &mut taker].into_iter().for_each(agree);
}

#[test]
fn a_replica_of_a_cluster_answers_the_same() {
    let cluster = RealCluster::start_with_replicas(&[]);
    let key_slot = slot(KEY.as_bytes());
    let index = cluster.masters().iter().position(|master| master.port() == cluster.owner(key_slot).port()).unwrap();
    let replica = &cluster.replicas()[index];
    let mut twin = Twin::of(replica);
    twin.world.set_cluster(Some(known(&cluster, replica)));
    let role =
        Role::Replica { host: "127.0.0.1".to_owned(), port: cluster.masters()[index].port(), is_connected: true };
    twin.world.set_role(role);
    // `CLUSTER SLOTS` lists a replica only once it has caught up, which takes each server its own time.
    let tried: Vec<_> = tried().into_iter().filter(|command| command != "CLUSTER SLOTS").collect();
    twin.agree(&tried.iter().map(String::as_str).collect::<Vec<_>>());
    twin.agree(&["READONLY", &format!("GET {KEY}"), &format!("SET {KEY} 1"), &format!("GET {ELSEWHERE}")]);
    twin.agree(&[&format!("EVAL \"return redis.call('GET', KEYS[1])\" 1 {KEY}"), "READWRITE", &format!("GET {KEY}")]);
}
