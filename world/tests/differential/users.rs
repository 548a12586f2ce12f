//! What users may do.

use tallygate_harness::server::Server;
use tallygate_world::server::Flavour;

use crate::twin::{End, Twin};

/// What a user tries, whatever it may.
const TRIED: [&str; 24] = [
    "PING",
    "GET app:a",
    "GET other",
    "SET app:a 1",
    "STRLEN app:a",
    "DEL app:a other",
    "UNLINK app:a",
    "EVAL \"return redis.call('GET', KEYS[1])\" 1 app:a",
    "EVAL \"return redis.call('GET', ARGV[1])\" 0 other",
    "EVAL \"return redis.pcall('GET', ARGV[1])\" 0 other",
    "EVAL \"return redis.call('SET', KEYS[1], 1)\" 1 app:a",
    "EVAL \"return redis.pcall('SET', KEYS[1], 1)\" 1 app:a",
    "EVAL \"return 1\" 1 other",
    "EVAL \"return redis.call('TIME')[3]\" 0",
    "CONFIG GET maxmemory",
    "CONFIG SET maxmemory 0",
    "CONFIG WHAT",
    "ACL WHOAMI",
    "HGET app:h f",
    "HSET app:h f v",
    "PUBLISH news x",
    "SUBSCRIBE news",
    "UNSUBSCRIBE news",
    "SELECT 0",
];

/// Rights, of which each user has one line.
const RIGHTS: [&str; 12] = [
    "",
    "~* +@all allchannels",
    "~app:* +@all",
    "~app:* +get +eval +time",
    "~app:* +@all -get",
    "~app:* +@all -@write",
    "~app:* +@read +@scripting",
    "~app:* +config|get +eval +set +strlen +publish &news",
    "allkeys allcommands resetchannels &news",
    "~app:? +@all -acl",
    "~app:* ~other +@all -eval -subscribe",
    "allkeys nocommands +ping +select",
];

#[test]
fn users_may_do_the_same() {
    let server = Server::start();
    let mut twin = Twin::of(&server);
    for rights in RIGHTS {
        let made = format!("ACL SETUSER alice reset on >secret {rights}");
        twin.agree(&[made.trim_end(), "SET app:a 1", "SET other 2"]);
        twin.reconnect(&server);
        twin.agree(&["AUTH alice wrong", "AUTH alice secret", "AUTH nobody x"]);
        twin.agree(&TRIED);
        twin.agree(&[
            "HELLO 3 AUTH default any SETNAME me",
            "ACL WHOAMI",
            "ACL SETUSER alice off",
            "AUTH alice secret",
        ]);
    }
    twin.agree(&[
        "ACL SETUSER alice on nopass",
        "AUTH alice anything",
        "HELLO 2 AUTH default x",
        "ACL DELUSER alice bob",
    ]);
}

#[test]
fn keys_that_may_only_be_read_are_the_same_except_on_redis_6_2() {
    let server = Server::start();
    let mut twin = Twin::of(&server);
    if Twin::flavour(&server) == Flavour::Redis62 {
        return twin.agree(&["ACL SETUSER alice on >secret %R~app:* +@all"]);
    }
    twin.agree(&["SET app:a 1", "ACL SETUSER alice on >secret %R~app:* +@all"]);
    twin.reconnect(&server);
    twin.agree(&[
        "AUTH alice secret",
        "GET app:a",
        "SET app:a 2",
        "STRLEN app:a",
        "PEXPIRE app:a 100000",
        "EXISTS app:a",
    ]);
}

#[test]
fn a_server_with_a_password_says_the_same_before_the_login() {
    let server = Server::start_with(&["--requirepass", "secret"]);
    let mut twin = Twin::of(&server);
    twin.settle(&["CONFIG SET requirepass secret"]);
    twin.end_with(End::Greeting);
    twin.agree(&["GET k", "PING", "NOTHING", "GET", "HELLO", "HELLO 3", "HELLO 2 SETNAME me", "EVAL \"return 1\" 0"]);
    twin.agree(&[
        "AUTH wrong",
        "AUTH default wrong",
        "HELLO 3 AUTH default wrong",
        "HELLO 3 AUTH default secret",
        "GET k",
    ]);
    twin.reconnect(&server);
    twin.end_with(End::Greeting);
    twin.agree(&["AUTH secret", "GET k", "RESET", "GET k"]);
}
