//! What is wrong, and what servers say about that.

use tallygate_harness::server::Server;
use tallygate_world::server::Flavour;

use crate::twin::Twin;

/// Each with the one mistake, or the corner, that it shows.
const COMMANDS: &[&str] = &[
    "NOTHING",
    "NOTHING a b",
    "GET",
    "GET a b",
    "SET k",
    "SET k v NX XX",
    "SET k v PX",
    "SET k v PX 0",
    "SET k v EX -1",
    "SET k v EX x",
    "SET k v KEEPTTL PX 1",
    "SET k v PX 9223372036854775807",
    "SETRANGE k -1 x",
    "SETRANGE k x x",
    "SETRANGE k 536870912 x",
    "SETRANGE none 0 \"\"",
    "GETRANGE k 0 x",
    "APPEND k",
    "EXPIRE k",
    "PEXPIRE k x",
    "PEXPIRE k 9223372036854775807",
    "HSET h a",
    "HSET h a 1 b",
    "HSCAN h x",
    "HSCAN h 0 COUNT 0",
    "HSCAN h 0 COUNT x",
    "HSCAN h 0 WHAT",
    "SCAN x",
    "SCAN 0 COUNT",
    "ZADD z 1",
    "ZADD z x a",
    "ZADD z NX XX 1 a",
    "ZADD z GT LT 1 a",
    "ZADD z NX GT 1 a",
    "ZADD z INCR 1 a 2 b",
    "ZADD z nan a",
    "ZINCRBY z x a",
    "ZINCRBY z inf a",
    "ZINCRBY z -inf a",
    "ZCOUNT z a b",
    "ZRANGE z a b",
    "ZRANGE z 0 1 WHAT",
    "ZRANGEBYSCORE z 0 1 LIMIT 0",
    "ZRANGEBYSCORE z 0 1 LIMIT a b",
    "ZREMRANGEBYRANK z 0 x",
    "HELLO 4",
    "HELLO x",
    "HELLO 2 WHAT",
    "HELLO 3 AUTH a",
    "HELLO 2 AUTH a b",
    "HELLO 2",
    "HELLO 3",
    "HELLO",
    "HELLO 2 SETNAME me",
    "CLIENT GETNAME",
    "AUTH",
    "AUTH x",
    "AUTH a b",
    "AUTH a b c",
    "SELECT x",
    "SELECT 16",
    "SELECT -1",
    "SELECT 3",
    "SET here v",
    "SELECT 0",
    "GET here",
    "CLIENT",
    "CLIENT WHAT",
    "CLIENT SETNAME",
    "CLIENT SETNAME \"a b\"",
    "CLIENT SETINFO LIB-NAME x",
    "CLIENT SETINFO WHAT x",
    "CLIENT SETINFO a",
    "CONFIG",
    "CONFIG WHAT",
    "CONFIG GET",
    "CONFIG GET save",
    "CONFIG GET maxmemory",
    "CONFIG SET nothing x",
    "CONFIG SET maxmemory x",
    "CONFIG SET save",
    "CLUSTER SLOTS",
    "CLUSTER WHAT",
    "CLUSTER",
    "READONLY",
    "READWRITE",
    "ASKING",
    "ROLE",
    "TIME x",
    "DBSIZE x",
    "FLUSHALL WHAT",
    "FLUSHALL",
    "ECHO",
    "PING a b",
    "PING a",
    "WAIT 0 x",
    "WAIT x 0",
    "SENTINEL MASTERS",
    "SCRIPT",
    "SCRIPT WHAT",
    "SCRIPT LOAD",
    "SCRIPT LOAD \"return 1\"",
    "SCRIPT LOAD =",
    "SCRIPT EXISTS x",
    "SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db E0E1F9FABFC9D4800C877A703B823AC0578FF8DB",
    "SCRIPT FLUSH WHAT",
    "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0",
    "EVALSHA E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 0",
    "SCRIPT FLUSH",
    "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0",
    "EVALSHA x 0",
    "EVAL \"return 1\" x",
    "EVAL \"return 1\" -1",
    "EVAL \"return 1\" 1",
    "EVAL \"return 1\"",
    "SCRIPT KILL",
    "ACL WHOAMI",
    "ACL WHAT",
    "ACL USERS",
    "ACL SETUSER bob what",
    "ACL SETUSER bob +what",
    "ACL SETUSER bob +@what",
    "ACL DELUSER default",
    "ACL DELUSER bob",
    "PUBLISH a b",
    "RESET",
    "TYPE none",
    "TTL none",
    "PTTL none",
    "ZSCORE none a",
    "HGET none a",
    "REPLICAOF a",
];

#[test]
fn servers_say_the_same_about_what_is_wrong() {
    let server = Server::start();
    Twin::of(&server).agree(COMMANDS);
}

#[test]
fn a_command_sent_as_a_line_has_the_same_answer() {
    let server = Server::start();
    let mut twin = Twin::of(&server);
    for line in ["PING\r\n", "SET k v\r\nGET k\r\n", "  GET   k  \n", "GET\r\n"] {
        twin.agree_on_bytes(line.as_bytes());
    }
}

#[test]
fn subscribers_have_the_same_answers_and_messages_in_both_protocols() {
    let server = Server::start();
    let mut twin = Twin::of(&server);
    for protocol in ["HELLO 2", "HELLO 3"] {
        twin.agree(&[protocol, "SUBSCRIBE one two", "SUBSCRIBE one", "GET k", "PING", "PING x", "UNSUBSCRIBE two"]);
        twin.agree(&["UNSUBSCRIBE", "UNSUBSCRIBE", "UNSUBSCRIBE none", "GET k"]);
    }
}

#[test]
fn the_world_knows_the_server_by_its_version() {
    let flavour = Twin::flavour(&Server::start());
    assert!([Flavour::Redis62, Flavour::Redis70, Flavour::Valkey9].contains(&flavour));
}
