//! The script's arguments and reply, as the header of `decide.lua` has them.

use std::fmt;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{Cmd, RedisError, ServerErrorKind};
use tallygate_lua as lua;

use crate::backend::{Answer, Request, Standing, Verdict};
use crate::clock::Clock;
use crate::key::Key;

/// A script, and the name that a server knows it by once it has seen it.
pub(super) struct Script {
    text: String,
    sha1: String,
    clock: Clock,
}

/// Names it, as its text is long.
impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("sha1", &self.sha1).finish_non_exhaustive()
    }
}

/// What the script says of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Answer(Answer),
    /// The ticks that were sent are not around the server's time.
    OffTheClock,
    /// A tally cannot be read. Nothing was charged; asked alone, the server says why.
    Unreadable,
}

impl Script {
    pub(super) fn new(text: &str, clock: Clock) -> Self {
        let text = timed(text, &clock);
        let sha1 = ::redis::Script::new(&text).get_hash().to_owned();
        Self { text, sha1, clock }
    }

    /// Runs the script in one round trip, or in two when the server has not seen it yet.
    pub(super) async fn run(
        &self,
        connection: &mut MultiplexedConnection,
        keys: impl Iterator<Item = Key> + Clone,
        arguments: &[Vec<u8>],
    ) -> Result<Vec<u8>, RedisError> {
        let answer = self.command("EVALSHA", &self.sha1, keys.clone(), arguments).query_async(connection).await;
        match answer {
            // Nothing was executed, so asking again counts nothing twice; EVAL also makes the server remember it.
            Err(error) if RedisError::kind(&error) == ServerErrorKind::NoScript.into() => {
                self.command("EVAL", &self.text, keys, arguments).query_async(connection).await
            }
            answer => answer,
        }
    }

    fn command(&self, name: &str, script: &str, keys: impl Iterator<Item = Key> + Clone, arguments: &[Vec<u8>]) -> Cmd {
        let mut command = ::redis::cmd(name);
        command.arg(script).arg(keys.clone().count());
        for key in keys {
            command.arg(key.as_str());
        }
        command.arg(lua::PROTOCOL).arg(arguments);
        #[cfg(feature = "__clock")]
        if let Some(us) = self.clock.manual_us() {
            command.arg(us);
        }
        #[cfg(not(feature = "__clock"))]
        let _ = &self.clock;
        command
    }
}

#[cfg(feature = "__clock")]
fn timed(text: &str, clock: &Clock) -> String {
    if clock.manual_us().is_some() { lua::at_callers_time(text) } else { text.to_owned() }
}

#[cfg(not(feature = "__clock"))]
fn timed(text: &str, _clock: &Clock) -> String {
    text.to_owned()
}

/// Reads the integers of a reply, or `None` where there is a part of one.
pub(super) fn integers(reply: &[u8]) -> Option<Vec<i64>> {
    let (integers, rest) = reply.as_chunks::<{ lua::INTEGER_BYTES }>();
    rest.is_empty().then(|| integers.iter().copied().map(integer).collect())
}

fn integer(bytes: [u8; lua::INTEGER_BYTES]) -> i64 {
    let mut upper = [0; 8];
    upper[..lua::INTEGER_BYTES].copy_from_slice(&bytes);
    // From the upper bytes they are moved down with their sign.
    i64::from_be_bytes(upper) >> (8 * (upper.len() - lua::INTEGER_BYTES))
}

/// Reads the replies to these requests, or `None` where they have not the shape of some.
pub(super) fn read_replies(mut values: &[i64], requests: &[Request<'_>]) -> Option<Vec<Reply>> {
    let mut replies = Vec::with_capacity(requests.len());
    for request in requests {
        let (&head, rest) = values.split_first_chunk::<{ lua::REPLY_FIELDS }>()?;
        // Only a request that was decided is reported on.
        let decided = head[1] >= lua::ADMITTED;
        let reported = if request.report && decided { request.policy.rules().len() } else { 0 };
        let (standings, rest) = rest.split_at_checked(lua::REPORT_FIELDS * reported)?;
        replies.push(read_reply(head, standings)?);
        values = rest;
    }
    values.is_empty().then_some(replies)
}

fn read_reply([at_us, rule, wait_us]: [i64; lua::REPLY_FIELDS], standings: &[i64]) -> Option<Reply> {
    let at_us = u64::try_from(at_us).ok()?;
    let verdict = match (rule, wait_us) {
        (lua::OFF_THE_CLOCK, _) => return Some(Reply::OffTheClock),
        (lua::UNREADABLE, _) => return Some(Reply::Unreadable),
        (lua::BANNED, 1..) => Verdict::Banned { retry_after: micros(wait_us)? },
        (lua::ADMITTED, 0) => Verdict::Admitted,
        (1.., lua::NEVER) => Verdict::Denied { rule: index(rule)?, retry_after: None },
        (1.., 1..) => Verdict::Denied { rule: index(rule)?, retry_after: Some(micros(wait_us)?) },
        _ => return None,
    };
    let standings = standings.chunks_exact(lua::REPORT_FIELDS).map(|pair| {
        let &[remaining, reset_us] = pair else { return None };
        Some(Standing { remaining: u64::try_from(remaining).ok()?, reset: micros(reset_us)? })
    });
    Some(Reply::Answer(Answer { verdict, standings: standings.collect::<Option<_>>()?, at_us }))
}

/// Returns the server's time.
pub(super) fn server_us(values: &[i64]) -> Option<u64> {
    values.first().and_then(|&us| u64::try_from(us).ok())
}

/// The script counts rules from 1.
fn index(rule: i64) -> Option<usize> {
    usize::try_from(rule).ok()?.checked_sub(1)
}

fn micros(us: i64) -> Option<Duration> {
    u64::try_from(us).ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Policy, Rule};

    fn read(values: &[i64], report: bool) -> Option<Vec<Reply>> {
        let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(1))).build().unwrap();
        read_replies(values, &[Request { policy: &policy, subjects: &[], cost: 1, report, peek: false }])
    }

    fn answer(verdict: Verdict, standings: Vec<Standing>) -> Vec<Reply> {
        vec![Reply::Answer(Answer { verdict, standings, at_us: 7 })]
    }

    #[test]
    fn a_reply_is_read_whole() {
        let second = Some(Duration::from_secs(1));
        assert_eq!(read(&[7, 0, 0], false).unwrap(), answer(Verdict::Admitted, vec![]));
        assert_eq!(
            read(&[7, 2, 1_000_000], false).unwrap(),
            answer(Verdict::Denied { rule: 1, retry_after: second }, vec![])
        );
        assert_eq!(read(&[7, 1, -1], false).unwrap(), answer(Verdict::Denied { rule: 0, retry_after: None }, vec![]));
        assert_eq!(read(&[7, 0, 0, 3, 5], true).unwrap(), answer(Verdict::Admitted, vec![Standing::of(3, 5)]));
        let banned = Verdict::Banned { retry_after: Duration::from_secs(1) };
        assert_eq!(read(&[7, -3, 1_000_000], true).unwrap(), answer(banned, vec![]));
        assert_eq!(read(&[7, -1, 0], false), Some(vec![Reply::OffTheClock]));
        assert_eq!(read(&[7, -2, 0], false), Some(vec![Reply::Unreadable]));
    }

    #[test]
    fn the_integers_of_a_reply_have_seven_bytes_and_a_sign() {
        let reply = [[0, 0, 0, 0, 0, 1, 2], [0xFF; 7], [0x80, 0, 0, 0, 0, 0, 0], [0x1F, 255, 255, 255, 255, 255, 255]];
        let expected = vec![258, -1, -(1 << 55), (1 << 53) - 1];
        assert_eq!(integers(reply.as_flattened()), Some(expected));
        assert_eq!(integers(&[]), Some(vec![]));
        assert_eq!(integers(&[0; 8]), None);
    }

    #[test]
    fn a_reply_of_another_shape_is_refused() {
        for broken in
            [&[][..], &[7], &[7, 0], &[-7, 0, 0], &[7, 0, 5], &[7, 1, 0], &[7, -4, 5], &[7, 1, -2], &[7, 0, 0, 0]]
        {
            assert_eq!(read(broken, false), None, "{broken:?}");
        }
        assert_eq!(read(&[7, 0, 0, 3, -5], true), None);
        assert_eq!(read(&[7, 0, 0, 3], true), None);
    }
}
