//! What the user of a server may do, tried in ways that change nothing.

use std::time::Duration;

use ::redis::{Cmd, RedisError, RedisResult, Value, cmd};

use crate::error::BackendError;
use crate::store::redis::server::Server;
use crate::store::redis::stored::ping_key;

/// A command of a limiter, and whether its user may send it.
#[derive(Clone, Debug)]
pub(crate) struct Permission {
    pub(crate) command: &'static str,
    pub(crate) purpose: CommandPurpose,
    pub(crate) access: Access,
}

/// What a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandPurpose {
    /// Calls of any policy.
    Decisions,
    /// Calls of a policy that limits concurrent calls.
    Leases,
    /// Overrides and the list of policies.
    Lists,
    /// Denied subjects, if they are kept.
    Denials,
}

/// Whether a user may do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Granted,
    Refused,
    /// It cannot be tried without a change, and the server cannot be asked.
    Untried,
}

/// A command, and arguments with which it changes nothing: `KEY` stands for a key that never exists.
struct Trial {
    arguments: &'static [&'static str],
    purpose: CommandPurpose,
}

const KEY: &str = "KEY";

/// The commands that the guide lists. `append` would create the key.
const TRIALS: [Trial; 25] = [
    decides(&["evalsha", "0000000000000000000000000000000000000000", "0"]),
    // The server refuses to compile it.
    decides(&["eval", "=", "0"]),
    decides(&["time"]),
    decides(&["getrange", KEY, "0", "0"]),
    decides(&["strlen", KEY]),
    // Only if the key exists.
    decides(&["set", KEY, "", "XX"]),
    decides(&["setrange", KEY, "0", ""]),
    decides(&["pexpire", KEY, "1"]),
    decides(&["pttl", KEY]),
    decides(&["unlink", KEY]),
    decides(&["hget", KEY, "0"]),
    decides(&["hlen", KEY]),
    decides(&["hgetall", KEY]),
    // Only if the member exists.
    leases(&["zadd", KEY, "XX", "0", "0"]),
    leases(&["zrem", KEY, "0"]),
    leases(&["zcount", KEY, "0", "0"]),
    leases(&["zrangebyscore", KEY, "0", "0"]),
    leases(&["zrevrangebyscore", KEY, "0", "0"]),
    leases(&["zremrangebyrank", KEY, "0", "0"]),
    lists(&["hscan", KEY, "0"]),
    // The value of the second field is missing.
    lists(&["hset", KEY, "0", "0", "1"]),
    lists(&["hdel", KEY, "0"]),
    // It is no number.
    denials(&["zincrby", KEY, "none", "0"]),
    denials(&["zremrangebyrank", KEY, "0", "0"]),
    denials(&["zrevrange", KEY, "0", "0"]),
];

const fn decides(arguments: &'static [&'static str]) -> Trial {
    Trial { arguments, purpose: CommandPurpose::Decisions }
}

const fn leases(arguments: &'static [&'static str]) -> Trial {
    Trial { arguments, purpose: CommandPurpose::Leases }
}

const fn lists(arguments: &'static [&'static str]) -> Trial {
    Trial { arguments, purpose: CommandPurpose::Lists }
}

const fn denials(arguments: &'static [&'static str]) -> Trial {
    Trial { arguments, purpose: CommandPurpose::Denials }
}

/// Asks the server whether this user may append, from version 7 on.
const MAY_APPEND: &str = "\
if not redis.acl_check_cmd then return -1 end
return redis.acl_check_cmd('append', ARGV[1], '') and 1 or 0";

/// Finds out what the user may do.
pub(super) async fn of(server: &Server, deadline: Duration) -> Result<Vec<Permission>, BackendError> {
    let key = ping_key(&server.prefix);
    let answers = server.try_each(TRIALS.iter().map(|trial| trial.command(&key)), deadline).await?;
    let tried = TRIALS.iter().zip(&answers).map(|(trial, answer)| Permission {
        command: trial.name(),
        purpose: trial.purpose,
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
    permissions.push(Permission { command: "append", purpose: CommandPurpose::Decisions, access });
    Ok(permissions)
}

impl Trial {
    fn name(&self) -> &'static str {
        self.arguments.first().copied().unwrap_or_default()
    }

    fn command(&self, key: &str) -> Cmd {
        let mut command = Cmd::new();
        for &argument in self.arguments {
            command.arg(if argument == KEY { key } else { argument });
        }
        command
    }
}

/// Whether the user may not send the command, or not on this key. Whatever else is answered, the user may.
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
        missing.retain(|command| !TRIALS.iter().any(|trial| trial.name() == *command));
        assert!(missing.is_empty(), "{missing:?}");
    }
}
