//! Servers that cannot do what they are asked.

use std::collections::BTreeMap;

use tallygate_harness::server::{Server, free_port};
use tallygate_harness::until::wait_until;
use tallygate_world::server::Role;

use crate::twin::{Twin, emptied};

/// Reads and writes, and scripts that do so.
const TRIED: [&str; 16] = [
    "PING",
    "GET k",
    "SET k 1",
    "APPEND k 1",
    "DEL none",
    "UNLINK none",
    "HSET h f 1",
    "TIME x",
    "EVAL \"return redis.call('SET', KEYS[1], 1)\" 1 k",
    "EVAL \"return redis.pcall('SET', KEYS[1], 1)\" 1 k",
    "EVAL \"return redis.call('GET', KEYS[1])\" 1 k",
    "EVAL \"return redis.call('DEL', KEYS[1])\" 1 none",
    "EVAL \"return redis.call('TIME')[3]\" 0",
    "EVAL \"redis.call('DEL', KEYS[1]) return redis.call('SET', KEYS[1], 2)\" 1 k",
    "EVALSHA 0000000000000000000000000000000000000000 1 k",
    "GET k",
];

#[test]
fn a_full_server_refuses_the_same() {
    let server = Server::start();
    let mut twin = Twin::of(&server);
    twin.agree(&["SET k 0", "CONFIG SET maxmemory 1"]);
    twin.agree(&TRIED);
    twin.agree(&["CONFIG SET maxmemory 0"]);
    twin.agree(&TRIED);
}

#[test]
fn a_server_without_replicas_refuses_the_same() {
    let server = Server::start();
    let mut twin = Twin::of(&server);
    twin.agree(&["SET k 0", "CONFIG SET min-replicas-to-write 1"]);
    twin.agree(&TRIED);
}

#[test]
fn a_server_that_cannot_save_refuses_the_same() {
    let server = Server::start();
    let mut twin = Twin::of(&server);
    twin.agree(&["SET k 0"]);
    // The file cannot be replaced by the one that is saved.
    std::fs::create_dir(server.folder().join("dump.rdb")).unwrap();
    twin.agree(&["CONFIG SET save \"3600 1\""]);
    server.ask::<()>("BGSAVE");
    let has_failed = || server.ask::<String>("INFO persistence").contains("rdb_last_bgsave_status:err");
    wait_until("the server cannot save", has_failed);
    twin.world.faults_mut().cannot_save = true;
    twin.agree(&TRIED);
}

#[test]
fn a_replica_refuses_the_same_with_its_primary_and_without() {
    let (primary, replica) = (Server::start(), Server::start());
    let mut twin = Twin::of(&replica);
    primary.ask::<()>("SET k 0");
    replica.ask::<()>(&format!("REPLICAOF 127.0.0.1 {}", primary.port()));
    wait_until("the replica follows", || replica.ask::<String>("INFO replication").contains("master_link_status:up"));
    twin.settle(&["SET k 0"]);
    let role = |port, is_connected| Role::Replica { host: "127.0.0.1".to_owned(), port, is_connected };
    twin.world.set_role(role(primary.port(), true));
    twin.agree(&TRIED);
    twin.agree(&["HELLO 3", "HELLO 2"]);

    let nowhere = free_port();
    twin.agree(&[&format!("REPLICAOF 127.0.0.1 {nowhere}")]);
    twin.world.set_role(role(nowhere, false));
    twin.agree(&TRIED);
    twin.agree(&["CONFIG SET replica-serve-stale-data no"]);
    twin.agree(&TRIED);
    twin.agree(&["CONFIG SET replica-serve-stale-data yes", "REPLICAOF NO ONE"]);
    twin.agree(&TRIED);
}

#[test]
fn a_server_that_runs_a_script_for_too_long_refuses_the_same() {
    let server = Server::start();
    let mut twin = Twin::of(&server);
    emptied(&mut twin, &server);
    server.ask::<()>("CONFIG SET lua-time-limit 1");
    let mut caller = server.connection();
    let busy = std::thread::spawn(move || {
        redis::cmd("EVAL").arg("while true do end").arg(0).exec(&mut caller).unwrap_err();
    });
    wait_until("the server is busy", || server.try_ask::<String>("PING").is_err());
    twin.world.faults_mut().is_busy = true;
    twin.agree_untimed(&["GET k", "SET k 1", "EVAL \"return 1\" 0", "SCRIPT KILL"]);
    busy.join().unwrap();
    twin.agree(&["GET k"]);
}

#[test]
fn a_sentinel_answers_the_same() {
    let (primary, name) = (Server::start(), "mymaster");
    let lines = [format!("sentinel monitor {name} 127.0.0.1 {} 1", primary.port())];
    let sentinel = Server::start_sentinel(&lines, &[]);
    let mut twin = Twin::of(&sentinel);
    twin.world.watch(BTreeMap::from([(name.to_owned(), ("127.0.0.1".to_owned(), primary.port()))]));
    twin.agree_untimed(&[
        "PING",
        "SENTINEL GET-MASTER-ADDR-BY-NAME mymaster",
        "SENTINEL get-master-addr-by-name other",
        "SENTINEL WHAT",
        "SENTINEL",
        "GET k",
        "EVAL \"return 1\" 0",
        "CLUSTER SLOTS",
        "AUTH a b",
        "ROLE",
        "HELLO 3",
        "SENTINEL GET-MASTER-ADDR-BY-NAME other",
        "SUBSCRIBE +switch-master +promoted-slave",
        "UNSUBSCRIBE +switch-master",
    ]);
}
