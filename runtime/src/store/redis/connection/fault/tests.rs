use std::collections::BTreeSet;
use std::error::Error as _;

use ::redis::{Value, parse_redis_value};

use super::*;
use crate::error::BackendError;
use crate::error::BackendErrorKind::{Away, Unknown, Wrong};
use crate::store::redis::connection::address::Destination;

/// Reads an error as a server sends it.
fn error(line: &str) -> RedisError {
    match parse_redis_value(format!("-{line}\r\n").as_bytes()) {
        Ok(Value::ServerError(error)) => error.into(),
        other => panic!("{line}: {other:?}"),
    }
}

fn explained(line: &str) -> BackendError {
    answer_error(Destination::parse("redis://h").unwrap().address(), &error(line))
}

#[test]
fn each_code_stands_in_the_table_once() {
    let codes: BTreeSet<_> = CODES.iter().map(|(code, ..)| code).collect();
    assert_eq!(codes.len(), CODES.len());
    assert!(codes.iter().all(|code| code.bytes().all(|byte| byte.is_ascii_uppercase())));
    let words: BTreeSet<_> = WORDS.iter().map(|(words, ..)| words).collect();
    assert_eq!(words.len(), WORDS.len());
}

#[test]
fn what_nobody_knows_is_unknown() {
    for line in ["ERR upstream failure", "QUOTA exceeded"] {
        assert_eq!(Fault::of(&error(line)), Fault::Unknown, "{line}");
    }
}

#[test]
fn what_a_script_of_redis_6_says_is_understood() {
    let call = "ERR Error running script (call to f_11631ba05bccc1029901576bbd2b147c272a1abc): @user_script:1: ";
    for (inner, fault) in [
        ("@user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.", Fault::Away),
        ("@user_script: 1: -MISCONF Redis is configured to save RDB snapshots, but", Fault::Away),
        ("@user_script: 1: -READONLY You can't write against a read only replica.", Fault::Demoted),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", Fault::Wrong),
        ("@user_script: 1: The user executing the script can't run this command or subcommand", Fault::Wrong),
        ("@user_script: 1: Unknown Redis command called from Lua script", Fault::Wrong),
        ("@user_script: 1: Wrong number of args calling Redis command From Lua script", Fault::Wrong),
        ("user_script:1: attempt to perform arithmetic on a nil value", Fault::Wrong),
        ("@user_script: 1: -QUOTA exceeded", Fault::Unknown),
    ] {
        assert_eq!(Fault::of(&error(&format!("{call}{inner}"))), fault, "{inner}");
    }
}

#[test]
fn what_the_client_library_says_is_understood() {
    let io = RedisError::from(std::io::Error::other("gone"));
    let of_kind = |kind| RedisError::from((kind, "…"));
    assert_eq!(Fault::of(&io), Fault::Broken);
    assert_eq!(Fault::of(&of_kind(ErrorKind::Parse)), Fault::Garbled);
    assert_eq!(Fault::of(&of_kind(ErrorKind::UnexpectedReturnType)), Fault::Wrong);
    assert_eq!(Fault::of(&of_kind(ErrorKind::AuthenticationFailed)), Fault::Wrong);
    assert_eq!(Fault::of(&of_kind(ErrorKind::EmptySentinelList)), Fault::Unknown);
}

#[test]
fn callers_learn_whether_waiting_may_help() {
    for (faults, kind) in [
        (&[Fault::Away, Fault::Demoted, Fault::Broken, Fault::TryAgain][..], Away),
        (&[Fault::Wrong, Fault::Garbled, Fault::Redirect], Wrong),
        (&[Fault::Unknown], Unknown),
    ] {
        assert!(faults.iter().all(|fault| fault.kind() == kind), "{faults:?}");
    }
}

#[test]
fn an_explanation_has_the_servers_words_and_the_remedy() {
    let oom = explained("OOM command not allowed when used memory > 'maxmemory'. script: on @user_script:1.");
    let text =
        "redis: OOM command not allowed when used memory > 'maxmemory'; the server is full: raise its `maxmemory`";
    assert_eq!((oom.to_string().as_str(), oom.kind()), (text, Away));
    assert!(oom.source().unwrap().is::<RedisError>());
    assert_eq!(explained("QUOTA exceeded").to_string(), "redis: QUOTA exceeded");
}

#[test]
fn an_explanation_and_its_source_show_no_value_that_a_server_quotes() {
    for quote in ["ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'default' 's3cret' ", "ERR"] {
        let explained = explained(quote);
        let source = explained.source().unwrap();
        for text in [explained.to_string(), format!("{explained:?}"), source.to_string(), format!("{source:?}")] {
            assert!(!text.contains("s3cret"), "{text}");
            assert!(text.contains("HELLO") || quote == "ERR", "{text}");
        }
    }
}

// From the sources of Redis 6.2.5 and 7.0.15 and of Valkey 8.0.1, and the texts in Valkey 9.1.2: what a server may
// answer to any command, to any command of a script, and to the commands of a limiter.

/// The setup is right. Waiting may help.
const STATES: [(&str, Fault); 32] = [
    ("MOVED 7629 127.0.0.1:21102", Fault::Redirect),
    ("ASK 3300 127.0.0.1:21103", Fault::Redirect),
    ("TRYAGAIN Multiple keys request during rehashing of slot", Fault::TryAgain),
    ("CLUSTERDOWN Hash slot not served", Fault::Away),
    ("CLUSTERDOWN The cluster is down", Fault::Away),
    ("CLUSTERDOWN The cluster is down and only accepts read commands", Fault::Away),
    ("ERR Lua script attempted to execute a command while the cluster is down", Fault::Away),
    ("ERR Script attempted to execute a command while the cluster is down", Fault::Away),
    ("ERR Script attempted to execute a write command while the cluster is down and readonly", Fault::Away),
    ("ERR Can not execute a command 'set' while the cluster is down", Fault::Away),
    ("ERR Can not execute a write command 'set' while the cluster is down and readonly", Fault::Away),
    ("ERR Script attempted to access a slot not served", Fault::Away),
    ("LOADING Redis is loading the dataset in memory", Fault::Away),
    ("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", Fault::Away),
    ("BUSY Valkey is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.", Fault::Away),
    ("BUSY Redis is busy running a module command.", Fault::Away),
    ("OOM command not allowed when used memory > 'maxmemory'.", Fault::Away),
    ("OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'", Fault::Away),
    (
        "MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk.",
        Fault::Away,
    ),
    ("MISCONF Errors writing to the AOF file: No space left on device", Fault::Away),
    ("MISCONF Valkey is configured to persist data to AOF, but it's currently unable to persist to disk.", Fault::Away),
    ("NOREPLICAS Not enough good replicas to write.", Fault::Away),
    ("ERR Script killed by user with SCRIPT KILL... script: 0488, on @user_script:1.", Fault::Away),
    ("ERR max number of clients reached", Fault::Away),
    ("ERR max number of clients + cluster connections reached", Fault::Away),
    ("READONLY You can't write against a read only replica.", Fault::Demoted),
    ("READONLY Can not run script with write flag on readonly replica", Fault::Demoted),
    ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", Fault::Demoted),
    ("ERR Can not execute the command on a stale replica", Fault::Demoted),
    ("REDIRECT 127.0.0.1:6380", Fault::Demoted),
    ("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)", Fault::Demoted),
    ("UNBLOCKED client unblocked via CLIENT UNBLOCK", Fault::Demoted),
];

/// Somebody has to change the setup.
const MISTAKES: [&str; 69] = [
    "CROSSSLOT Keys in request don't hash to the same slot",
    "NOAUTH Authentication required.",
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can",
    "WRONGPASS invalid username-password pair or user is disabled.",
    "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration",
    "NOPERM this user has no permissions to run the 'evalsha' command or its subcommand",
    "NOPERM this user has no permissions to run the 'evalsha' command",
    "NOPERM this user has no permissions to access one of the keys used as arguments",
    "NOPERM this user has no permissions to access one of the channels used as arguments",
    "NOPERM User a has no permissions to run the 'evalsha' command",
    "NOPERM No permissions to access a key",
    "NOPERM No permissions to access a channel",
    "NOPERM No permissions to access database",
    "ERR no permission",
    "ERR ACL failure in script: User a has no permissions to run the 'set' command",
    "ERR The user executing the script can't run this command or subcommand",
    "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments",
    "ERR The user executing the script can't publish to the channel mentioned in the command",
    "ERR The user executing the script is lacking the permissions for the command",
    "NOPROTO unsupported protocol version",
    "DENIED Redis is running in protected mode because protected mode is enabled",
    "DENIED Running in protected mode because protected mode is enabled",
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "NOSCRIPT No matching script. Please use EVAL.",
    "NOSCRIPT No matching script.",
    "EXECABORT Transaction discarded because of previous errors.",
    "NOSUB 'unsubscribe' command executed not in subscribed mode",
    "TALLYGATE the key of a tally holds something that is no tally",
    "ERR This instance has cluster support disabled",
    "ERR SELECT is not allowed in cluster mode",
    "ERR DB index is out of range",
    "ERR unknown command `HELLO`, with args beginning with: `3`, ",
    "ERR unknown command 'HELLO', with args beginning with: '3' ",
    "ERR unknown subcommand 'SLOTS'. Try CLUSTER HELP.",
    "ERR unknown subcommand or wrong number of arguments for 'SLOTS'. Try CLUSTER HELP.",
    "ERR Unknown subcommand or wrong number of arguments for 'SLOTS'. Try CLUSTER HELP.",
    "ERR wrong number of arguments for 'evalsha' command",
    "ERR Wrong number of arguments for 'sentinel get-master-addr-by-name'",
    "ERR Syntax error in HELLO option 'AUTH'",
    "ERR Unsupported option NX",
    "ERR Protocol error: unauthenticated bulk length",
    "ERR Can't execute 'evalsha': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
    "ERR Could not find scripting engine 'lua'",
    "ERR Error compiling script (new function): user_script:1: '=' expected near '<eof>'",
    "ERR Error running script (new function): user_script:1: no",
    "ERR user_script:1: attempt to perform arithmetic on a nil value script: on @user_script:1.",
    "ERR Invalid engine in script shebang",
    "ERR Unexpected flag in script shebang: x",
    "ERR Unknown Redis command called from Lua script",
    "ERR Unknown command called from script",
    "ERR Wrong number of args calling Redis command From Lua script",
    "ERR Wrong number of args calling command from script",
    "ERR This Redis command is not allowed from scripts",
    "ERR This Valkey command is not allowed from script",
    "ERR command 'subscribe' is not allowed on script mode",
    "ERR Write commands are not allowed from read-only scripts.",
    "ERR Write command 'set' was called while write is not allowed.",
    "ERR Write commands not allowed after non deterministic commands. Call redis.replicate_commands() at the start of your",
    "ERR Script attempted to access a non local key in a cluster node",
    "ERR Script attempted to access keys that do not hash to the same slot",
    "ERR Unable to execute command 'get' in script because undeclared keys were accessed during rehashing of the slot",
    "ERR Number of keys can't be greater than number of args",
    "ERR syntax error",
    "ERR value is not an integer or out of range",
    "ERR value is not a valid float",
    "ERR offset is out of range",
    "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
    "ERR invalid expire time in 'pexpire' command",
    "ERR invalid cursor",
];

#[test]
fn a_state_is_no_mistake() {
    for (line, fault) in STATES {
        assert_eq!(Fault::of(&error(line)), fault, "{line}");
    }
}

#[test]
fn a_mistake_is_none_that_waiting_mends() {
    for line in MISTAKES {
        assert_eq!(Fault::of(&error(line)), Fault::Wrong, "{line}");
    }
}

#[test]
fn each_row_of_the_tables_is_said_by_a_server() {
    let lines: Vec<_> = STATES.iter().map(|(line, _)| *line).chain(MISTAKES).collect();
    let said: BTreeSet<_> = lines.iter().filter_map(|line| line.split(' ').next()).collect();
    let unsaid: Vec<_> = CODES.iter().filter(|(code, ..)| !said.contains(code)).collect();
    assert!(unsaid.is_empty(), "{unsaid:?}");
    let unsaid: Vec<_> = WORDS.iter().filter(|(words, ..)| !lines.iter().any(|line| line.contains(words))).collect();
    assert!(unsaid.is_empty(), "{unsaid:?}");
}

fn read<'a>(code: &'a str, text: &'a str) -> (&'a str, &'a str) {
    let ServerMessage { code, text } = ServerMessage::read(code, text);
    (code, text)
}

#[test]
fn an_error_is_read_with_its_code() {
    assert_eq!(read("BUSY", "Redis is busy running a script."), ("BUSY", "Redis is busy running a script."));
    assert_eq!(read("ERR", "max number of clients reached"), ("ERR", "max number of clients reached"));
    assert_eq!(ServerMessage::read("OOM", "command not allowed.").to_string(), "OOM command not allowed");
}

#[test]
fn an_error_of_redis_6_is_taken_out_of_what_its_script_wraps_around_it() {
    let call = "Error running script (call to f_0488038cc16b16b6c27a7befec54a90b159e3117): ";
    for (wrapped, inner) in [
        ("@user_script:1: @user_script: 1: -OOM command not allowed when", ("OOM", "command not allowed when")),
        ("@user_script:12: WRONGTYPE Operation against", ("WRONGTYPE", "Operation against")),
        (
            "@user_script:1: @user_script: 1: The user executing the script can't run",
            ("ERR", "The user executing the script can't run"),
        ),
        ("@user_script:1: user_script:1: attempt to perform", ("ERR", "user_script:1: attempt to perform")),
    ] {
        assert_eq!(read("ERR", &format!("{call}{wrapped}")), inner, "{wrapped}");
    }
    assert_eq!(read("ERR", call), ("ERR", call));
}

#[test]
fn where_in_a_script_it_happened_is_left_out() {
    for place in
        [" script: 11631ba05bccc1029901576bbd2b147c272a1abc, on @user_script:1.", " script: on @user_script:1."]
    {
        assert_eq!(read("OOM", &format!("command not allowed{place}")), ("OOM", "command not allowed"));
    }
    assert_eq!(read("ERR", "a script: of mine"), ("ERR", "a script: of mine"));
}

#[test]
fn the_values_that_a_server_quotes_are_left_out() {
    let text = "unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'default' 's3cret' ";
    assert_eq!(read("ERR", text), ("ERR", "unknown command 'HELLO'"));
}
