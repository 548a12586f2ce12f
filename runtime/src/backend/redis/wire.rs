//! The script's arguments and reply, as the header of `decide.lua` has them.

use ::redis::aio::MultiplexedConnection;
use ::redis::{Cmd, RedisError, ServerErrorKind};
use std::time::Duration;
use tallygate_lua as lua;
use tallygate_rules::{Role, Rule};

use crate::backend::{Reply, Request};

/// The one script, and the name that a server knows it by once it has seen it.
#[derive(Debug)]
pub(super) struct Script {
    sha1: String,
}

impl Script {
    pub(super) fn new() -> Self {
        Self { sha1: ::redis::Script::new(lua::DECIDE).get_hash().to_owned() }
    }

    /// Runs the script in one round trip, or in two when the server has not seen it yet.
    pub(super) async fn run(
        &self,
        connection: &mut MultiplexedConnection,
        request: Request<'_>,
    ) -> Result<Vec<i64>, RedisError> {
        let answer = command("EVALSHA", &self.sha1, request).query_async(connection).await;
        match answer {
            // Nothing was executed, so asking again counts nothing twice; EVAL also makes the server remember it.
            Err(error) if error.kind() == ServerErrorKind::NoScript.into() => {
                command("EVAL", lua::DECIDE, request).query_async(connection).await
            }
            answer => answer,
        }
    }
}

fn command(name: &str, script: &str, request: Request<'_>) -> Cmd {
    let mut command = ::redis::cmd(name);
    command.arg(script).arg(1).arg(request.key.as_str()).arg(lua::PROTOCOL);
    let largest = request.rules.iter().map(Rule::count).max().unwrap_or_default();
    let longest = request.rules.iter().map(Rule::per).max().unwrap_or_default();
    command.arg(1).arg(request.cost).arg(request.rules.len()).arg(largest).arg(as_us(longest));
    for rule in request.rules {
        command.arg(kind(rule)).arg(rule.count()).arg(as_us(rule.per()));
    }
    command
}

fn kind(rule: &Rule) -> &'static str {
    match rule.role() {
        Role::Duplicate => lua::DUPLICATE,
        _ => lua::SLIDING_WINDOW,
    }
}

/// Windows are validated to be far below 2^53 microseconds.
fn as_us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Reads the answer to one request, or `None` where it has not the shape of one.
pub(super) fn read_reply(values: &[i64]) -> Option<Reply> {
    let &[rule, wait_us] = values.get(lua::REPLY_HEAD..)? else { return None };
    match (rule, wait_us) {
        (lua::ADMITTED, 0) => Some(Reply::Admitted),
        (1.., lua::NEVER) => Some(Reply::Denied { rule: index(rule)?, retry_after: None }),
        (1.., 1..) => {
            let retry_after = Some(Duration::from_micros(u64::try_from(wait_us).ok()?));
            Some(Reply::Denied { rule: index(rule)?, retry_after })
        }
        _ => None,
    }
}

/// The script counts rules from 1.
fn index(rule: i64) -> Option<usize> {
    usize::try_from(rule).ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_or_refused_whole() {
        let second = Some(Duration::from_secs(1));
        assert_eq!(read_reply(&[7, 0, 0]), Some(Reply::Admitted));
        assert_eq!(read_reply(&[7, 2, 1_000_000]), Some(Reply::Denied { rule: 1, retry_after: second }));
        assert_eq!(read_reply(&[7, 1, -1]), Some(Reply::Denied { rule: 0, retry_after: None }));
        for broken in [&[][..], &[7], &[7, 0], &[7, 0, 5], &[7, 1, 0], &[7, -1, 5], &[7, 1, -2], &[7, 0, 0, 0]] {
            assert_eq!(read_reply(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn the_constants_and_the_script_agree() {
        let script = lua::DECIDE;
        assert!(script.contains(&format!("if ARGV[1] ~= '{}' then", lua::PROTOCOL)));
        assert!(script.contains(&format!("local HIT_BYTES = {}\n", lua::HIT_BYTES)));
        for kind in [lua::SLIDING_WINDOW, lua::DUPLICATE] {
            assert!(script.contains(&format!("'{kind}' (")), "{kind} is not in the header");
        }
    }
}
