use std::collections::BTreeSet;
use std::error::Error as _;

use ::redis::{Value, parse_redis_value};

use super::table::{CODES, WORDS};
use super::*;
use crate::error::BackendError;
use crate::error::BackendErrorKind::{Away, Unknown, Wrong};
use crate::store::redis::connection::address::Destination;

/// Reads an error as a server sends it.
pub(super) fn error(line: &str) -> RedisError {
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
