//! The permissions of the user of a server, tried in ways that change nothing.

use std::time::Duration;

use ::redis::{Cmd, RedisError, RedisResult, Value, cmd};

use self::CommandPurpose::{Decisions, Denials, Leases, Lists};
use crate::error::BackendError;
use crate::store::redis::server::Server;
use crate::store::redis::stored::ping_key;

#[derive(Clone, Debug)]
pub(crate) struct Permission {
    pub(crate) command: &'static str,
    pub(crate) purpose: CommandPurpose,
    pub(crate) access: Access,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandPurpose {
    Decisions,
    /// Calls of a policy that limits concurrent calls.
    Leases,
    /// Overrides and the registry of policies.
    Lists,
    /// Denied subjects, if they are kept.
    Denials,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Granted,
    Refused,
    /// Trying it would change something, and the server cannot be asked.
    Untried,
}

/// The purpose of a command, and its words, which change nothing. [`KEY`] stands for a key that never exists.
type PlayedCommand = (CommandPurpose, &'static [&'static str]);

const KEY: &str = "KEY";

/// The commands that the guide lists, without `append`, which would create the key.
const TRIALS: [PlayedCommand; 25] = [
    (Decisions, &["evalsha", "0000000000000000000000000000000000000000", "0"]),
    // The server refuses to compile the text.
    (Decisions, &["eval", "=", "0"]),
    (Decisions, &["time"]),
    (Decisions, &["getrange", KEY, "0", "0"]),
    (Decisions, &["strlen", KEY]),
    // Writes only if the key exists.
    (Decisions, &["set", KEY, "", "XX"]),
    (Decisions, &["setrange", KEY, "0", ""]),
    (Decisions, &["pexpire", KEY, "1"]),
    (Decisions, &["pttl", KEY]),
    (Decisions, &["unlink", KEY]),
    (Decisions, &["hget", KEY, "0"]),
    (Decisions, &["hlen", KEY]),
    (Decisions, &["hgetall", KEY]),
    // Writes only if the member exists.
    (Leases, &["zadd", KEY, "XX", "0", "0"]),
    (Leases, &["zrem", KEY, "0"]),
    (Leases, &["zcount", KEY, "0", "0"]),
    (Leases, &["zrangebyscore", KEY, "0", "0"]),
    (Leases, &["zrevrangebyscore", KEY, "0", "0"]),
    (Leases, &["zremrangebyrank", KEY, "0", "0"]),
    (Lists, &["hscan", KEY, "0"]),
    // Refused, because the second field has no value.
    (Lists, &["hset", KEY, "0", "0", "1"]),
    (Lists, &["hdel", KEY, "0"]),
    // Refused, because `none` is no number.
    (Denials, &["zincrby", KEY, "none", "0"]),
    (Denials, &["zremrangebyrank", KEY, "0", "0"]),
    (Denials, &["zrevrange", KEY, "0", "0"]),
];

/// Asks the server whether this user may append. Redis can answer that from version 7 on.
const MAY_APPEND: &str = "\
if not redis.acl_check_cmd then return -1 end
return redis.acl_check_cmd('append', ARGV[1], '') and 1 or 0";

pub(super) async fn of(server: &Server, deadline: Duration) -> Result<Vec<Permission>, BackendError> {
    let key = ping_key(&server.setup.prefix);
    let answers = server.try_each(TRIALS.iter().map(|(_, words)| command(words, &key)), deadline).await?;
    let tried = TRIALS.iter().zip(&answers).map(|(&(purpose, words), answer)| Permission {
        command: words.first().copied().unwrap_or_default(),
        purpose,
        access: if is_refused(answer) { Access::Refused } else { Access::Granted },
    });
    let mut permissions: Vec<_> = tried.collect();
    let mut command = cmd("EVAL");
    command.arg(MAY_APPEND).arg(0).arg(&key);
    let access = match server.try_one(&command, deadline).await? {
        Ok(Value::Int(1)) => Access::Granted,
        Ok(Value::Int(0)) => Access::Refused,
        _ => Access::Untried,
    };
    permissions.push(Permission { command: "append", purpose: Decisions, access });
    Ok(permissions)
}

fn command(words: &[&str], key: &str) -> Cmd {
    let mut command = Cmd::new();
    for &word in words {
        command.arg(if word == KEY { key } else { word });
    }
    command
}

/// Whether the user may not send the command, or not for this key. After any other answer, the user may.
fn is_refused(answer: &RedisResult<Value>) -> bool {
    answer.as_ref().err().and_then(RedisError::code) == Some("NOPERM")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_commands_of_the_guide_are_tried() {
        let page = include_str!("../../../../guide/production.md");
        let (_, user) = page.split_once("ACL SETUSER").unwrap();
        let (user, _) = user.split_once("```").unwrap();
        let documented = user.split_whitespace().filter_map(|word| word.strip_prefix('+'));
        let mut missing: Vec<_> = documented.filter(|command| *command != "append").collect();
        missing.retain(|command| !TRIALS.iter().any(|(_, words)| words[0] == *command));
        assert!(missing.is_empty(), "{missing:?}");
    }
}
