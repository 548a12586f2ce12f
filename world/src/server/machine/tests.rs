use super::*;
use crate::server::cluster::ClusterNode;

/// The time at which the tests begin.
const START_US: u64 = 1_800_000_000_000_000;

/// A server and one client.
struct Asked {
    server: Server,
    client: SessionId,
}

impl Asked {
    fn new() -> Self {
        let mut server = Server::new(Flavour::Redis70).unwrap();
        server.set_time_us(START_US);
        let client = server.open();
        Self { server, client }
    }

    /// Sends a command as a line, and returns the answer.
    fn ask(&mut self, command: &str) -> String {
        let answer = self.server.feed(self.client, format!("{command}\r\n").as_bytes());
        String::from_utf8(answer).unwrap()
    }

    fn pass_ms(&mut self, millis: u64) {
        self.server.set_time_us(self.server.time_us() + millis * 1_000);
    }
}

#[test]
fn a_key_is_there_until_its_last_millisecond_is_over() {
    let mut asked = Asked::new();
    assert_eq!(asked.ask("SET k v PX 100"), "+OK\r\n");
    asked.pass_ms(100);
    assert_eq!(asked.ask("GET k"), "$1\r\nv\r\n");
    asked.pass_ms(1);
    assert_eq!(asked.ask("GET k") + &asked.ask("DBSIZE"), "$-1\r\n:0\r\n");
}

#[test]
fn a_clock_that_goes_back_keeps_keys_for_longer() {
    let mut asked = Asked::new();
    asked.ask("SET k v PX 1000");
    asked.server.set_time_us(START_US - 5_000_000);
    assert_eq!(asked.ask("PTTL k"), ":6000\r\n");
}

#[test]
fn a_sweep_removes_what_has_expired() {
    let mut asked = Asked::new();
    asked.ask("SET k v PX 100");
    asked.pass_ms(200);
    assert_eq!(asked.ask("DBSIZE"), ":1\r\n");
    asked.server.sweep();
    assert_eq!(asked.ask("DBSIZE"), ":0\r\n");
}

/// A primary and a replica of it.
fn pair() -> (Asked, Asked) {
    let (mut primary, mut replica) = (Asked::new(), Asked::new());
    primary.server.record_writes(true);
    let role = Role::Replica { host: "primary".to_owned(), port: 6379, is_connected: true };
    replica.server.set_role(role);
    (primary, replica)
}

#[test]
fn a_replica_has_what_was_applied_and_loses_the_rest_when_it_is_promoted() {
    let (mut primary, mut replica) = pair();
    primary.ask("SET k 1 PX 1000");
    primary.ask("EVAL \"redis.call('HSET','h','f',1);redis.call('ZINCRBY','z',1,'m');return\" 0");
    let writes = primary.server.take_writes();
    assert_eq!(writes.len(), 1);
    primary.ask("SET k 2");
    replica.server.apply(&writes[0]);
    replica.server.set_role(Role::Primary);
    assert_eq!(replica.ask("GET k"), "$1\r\n1\r\n");
    replica.pass_ms(1_001);
    assert_eq!(replica.ask("GET k"), "$-1\r\n");
}

#[test]
fn a_replica_has_all_that_a_script_has_written_or_nothing() {
    let (mut primary, mut replica) = pair();
    let script = "redis.call('SET',KEYS[1],1) redis.call('SET',KEYS[2],2) return redis.call('HGET',KEYS[1],'f')";
    let command = Arguments::of(["EVAL", script, "2", "a", "b"]);
    let mut bytes = Vec::new();
    command.encode(&mut bytes);
    assert!(primary.server.feed(primary.client, &bytes).starts_with(b"-WRONGTYPE"));
    let writes = primary.server.take_writes();
    assert_eq!(writes.len(), 1);
    replica.server.apply(&writes[0]);
    assert_eq!(replica.ask("GET a") + &replica.ask("GET b"), "$1\r\n1\r\n$1\r\n2\r\n");
}

#[test]
fn a_replica_does_not_show_what_has_expired_and_keeps_it_until_it_is_told() {
    let (mut primary, mut replica) = pair();
    primary.ask("SET k v PX 100");
    replica.server.apply(&primary.server.take_writes()[0]);
    replica.pass_ms(200);
    assert_eq!(replica.ask("GET k") + &replica.ask("DBSIZE"), "$-1\r\n:1\r\n");
    primary.pass_ms(200);
    primary.ask("GET k");
    replica.server.apply(&primary.server.take_writes()[0]);
    assert_eq!(replica.ask("DBSIZE"), ":0\r\n");
}

#[test]
fn a_server_that_starts_again_has_what_was_saved_and_knows_no_script() {
    let mut asked = Asked::new();
    asked.ask("SET k v PX 1000");
    asked.ask("HSET h f 1 g 2");
    asked.ask("ZADD z 1.5 a 0.1 b");
    asked.ask("SELECT 3");
    asked.ask("SET other 1");
    let sha1 = asked.ask("SCRIPT LOAD return").split("\r\n").nth(1).unwrap().to_owned();
    let saved = asked.server.save();
    asked.ask("FLUSHALL");
    asked.server.restart(&saved);
    assert!(!asked.server.is_open(asked.client));
    asked.client = asked.server.open();
    assert_eq!(asked.ask("PTTL k") + &asked.ask("HGET h g"), ":1000\r\n$1\r\n2\r\n");
    assert_eq!(asked.ask("ZRANGE z 0 -1"), "*2\r\n$1\r\nb\r\n$1\r\na\r\n");
    assert!(asked.ask(&format!("EVALSHA {sha1} 0")).starts_with("-NOSCRIPT"));
    assert_eq!(asked.server.save(), saved);
}

#[test]
fn keys_of_a_slot_move_with_their_ttl() {
    let (mut giver, mut taker) = (Asked::new(), Asked::new());
    giver.ask("SET {a}1 v PX 1000");
    giver.ask("HSET {a}2 f v");
    giver.ask("SET {b}1 v");
    let bytes = giver.server.take_keys(slot(b"a"), usize::MAX);
    taker.server.put_keys(&bytes);
    assert_eq!(giver.ask("DBSIZE") + &taker.ask("DBSIZE") + &taker.ask("PTTL {a}1"), ":1\r\n:2\r\n:1000\r\n");
}

#[test]
fn a_node_serves_a_slot_that_is_assigned_to_it() {
    let mut asked = Asked::new();
    let node = |id: &str, port| ClusterNode { id: id.to_owned(), host: "h".to_owned(), port, follows: None };
    asked.server.set_cluster(Some(Cluster::new("one", vec![node("one", 1), node("two", 2)])));
    assert_eq!(asked.ask("GET k"), "-CLUSTERDOWN Hash slot not served\r\n");
    let cluster = asked.server.cluster_mut().unwrap();
    cluster.assign(0..=16_383, "two");
    assert_eq!(asked.ask("GET k"), "-MOVED 7629 h:2\r\n");
    asked.server.cluster_mut().unwrap().assign(7_629..=7_629, "one");
    assert_eq!(asked.ask("GET k"), "$-1\r\n");
    asked.server.cluster_mut().unwrap().is_down = true;
    assert_eq!(asked.ask("GET k"), "-CLUSTERDOWN The cluster is down\r\n");
}

#[test]
fn a_sentinel_says_where_the_primary_is_and_reports_another_one() {
    let mut asked = Asked::new();
    let place = |port| BTreeMap::from([("mymaster".to_owned(), ("h".to_owned(), port))]);
    asked.server.watch(place(1));
    assert_eq!(asked.ask("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster"), "*2\r\n$1\r\nh\r\n$1\r\n1\r\n");
    assert_eq!(asked.ask("SENTINEL GET-MASTER-ADDR-BY-NAME other"), "*-1\r\n");
    assert!(asked.ask("GET k").starts_with("-ERR unknown command"));
    asked.ask("HELLO 3");
    assert!(asked.ask("SUBSCRIBE +switch-master").starts_with(">3\r\n"));
    asked.server.watch(place(2));
    asked.server.publish("+switch-master", "mymaster h 1 h 2");
    assert_eq!(asked.server.with_output(), [asked.client]);
    let report = String::from_utf8(asked.server.take_output(asked.client)).unwrap();
    assert!(report.starts_with(">3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n"), "{report}");
}

#[test]
fn a_message_reaches_every_subscriber() {
    let mut asked = Asked::new();
    let listener = asked.server.open();
    asked.server.feed(listener, b"SUBSCRIBE news\r\n");
    assert_eq!(asked.ask("PUBLISH news x"), ":1\r\n");
    assert!(asked.server.take_output(listener).ends_with(b"$4\r\nnews\r\n$1\r\nx\r\n"));
    asked.server.close(listener);
    assert_eq!(asked.ask("PUBLISH news x"), ":0\r\n");
}

#[test]
fn a_server_that_loads_or_runs_a_script_for_too_long_says_so() {
    let mut asked = Asked::new();
    asked.server.faults_mut().is_loading = true;
    assert_eq!(asked.ask("GET k"), "-LOADING Redis is loading the dataset in memory\r\n");
    *asked.server.faults_mut() = Faults { is_busy: true, ..Faults::default() };
    assert!(asked.ask("GET k").starts_with("-BUSY Redis is busy running a script."));
    assert_eq!(asked.ask("SCRIPT KILL") + &asked.ask("GET k"), "+OK\r\n$-1\r\n");
}

#[test]
fn the_same_commands_leave_the_same_bytes() {
    let played = || {
        let mut asked = Asked::new();
        for number in 0..2_000 {
            asked.ask(&format!("HSET h field-{number} {number}"));
            asked.ask(&format!("SET key-{number} {number}"));
        }
        asked.ask("SCAN 0 COUNT 50") + &asked.ask("HSCAN h 0 COUNT 50") + &String::from_utf8_lossy(&asked.server.save())
    };
    assert_eq!(played(), played());
}
