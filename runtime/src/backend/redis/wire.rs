//! The script's arguments and reply, as the header of `decide.lua` has them.

use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{Cmd, RedisError, ServerErrorKind};
use tallygate_lua as lua;
use tallygate_rules::{Algorithm, Role, Rule};

use crate::backend::{Answer, Request, Standing, Verdict, as_us};
use crate::clock::Clock;

/// The one script, and the name that a server knows it by once it has seen it.
#[derive(Debug)]
pub(super) struct Script {
    text: String,
    sha1: String,
    clock: Clock,
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
    pub(super) fn new(clock: Clock) -> Self {
        let text = text(&clock);
        let sha1 = ::redis::Script::new(&text).get_hash().to_owned();
        Self { text, sha1, clock }
    }

    /// Runs the script in one round trip, or in two when the server has not seen it yet.
    ///
    /// `now_us` is this process's best guess of the server's time.
    pub(super) async fn run(
        &self,
        connection: &mut MultiplexedConnection,
        requests: &[Request<'_>],
        now_us: u64,
    ) -> Result<Vec<i64>, RedisError> {
        let answer = self.command("EVALSHA", &self.sha1, requests, now_us).query_async(connection).await;
        match answer {
            // Nothing was executed, so asking again counts nothing twice; EVAL also makes the server remember it.
            Err(error) if RedisError::kind(&error) == ServerErrorKind::NoScript.into() => {
                self.command("EVAL", &self.text, requests, now_us).query_async(connection).await
            }
            answer => answer,
        }
    }

    fn command(&self, name: &str, script: &str, requests: &[Request<'_>], now_us: u64) -> Cmd {
        let mut command = ::redis::cmd(name);
        let keys: usize = requests.iter().map(|request| request.keys.len()).sum();
        command.arg(script).arg(keys);
        for key in requests.iter().flat_map(|request| request.keys) {
            command.arg(key.as_str());
        }
        command.arg(lua::PROTOCOL).arg(requests.len());
        for request in requests {
            push_request(&mut command, request, now_us);
        }
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
fn text(clock: &Clock) -> String {
    if clock.manual_us().is_some() { lua::decide_at_callers_time() } else { lua::DECIDE.to_owned() }
}

#[cfg(not(feature = "__clock"))]
fn text(_clock: &Clock) -> String {
    lua::DECIDE.to_owned()
}

fn push_request(command: &mut Cmd, request: &Request<'_>, now_us: u64) {
    let (rules, group) = (request.policy.rules(), request.policy.group());
    let sliding = rules.iter().filter(|rule| matches!(rule.algorithm(), Algorithm::SlidingWindow { .. }));
    let largest = sliding.map(Rule::count).max().unwrap_or_default();
    #[cfg(feature = "cron")]
    let mut ticks: Vec<_> = request.policy.ticks().around(now_us).collect();
    #[cfg(feature = "cron")]
    let longest_us = group.longest_us.max(ticks.iter().map(|ticks| longest_gap(ticks)).max().unwrap_or_default());
    #[cfg(not(feature = "cron"))]
    let (longest_us, _) = (group.longest_us, now_us);
    command.arg(request.keys.len()).arg(request.cost).arg(u8::from(request.report));
    command.arg(rules.len()).arg(group.cells).arg(largest).arg(longest_us);
    #[cfg(feature = "cron")]
    let mut ticks = ticks.drain(..);
    for rule in rules {
        let count = rule.count();
        match rule.algorithm() {
            Algorithm::SlidingWindow { per } if rule.role() == Role::Duplicate => {
                command.arg(lua::DUPLICATE).arg(count).arg(as_us(*per));
            }
            Algorithm::SlidingWindow { per } => _ = command.arg(lua::SLIDING_WINDOW).arg(count).arg(as_us(*per)),
            Algorithm::SlidingCounter { per } => _ = command.arg(lua::SLIDING_COUNTER).arg(count).arg(as_us(*per)),
            Algorithm::FixedWindow { per } => _ = command.arg(lua::FIXED_WINDOW).arg(count).arg(as_us(*per)),
            Algorithm::TokenBucket(bucket) => {
                command.arg(lua::TOKEN_BUCKET).arg(count).arg(as_us(bucket.per()));
                command.arg(bucket.capacity_or(count)).arg(bucket.initial_or(count));
                command.arg(as_us(bucket.reset_after_or(count)));
            }
            #[cfg(feature = "cron")]
            Algorithm::Cron { .. } => {
                let ticks = ticks.next().unwrap_or_default();
                command.arg(lua::CRON).arg(count).arg(ticks.len());
                for tick in ticks.iter() {
                    command.arg(tick);
                }
            }
            // An algorithm that this version of the crate does not know: the script refuses it.
            _ => _ = command.arg("?").arg(count),
        }
    }
}

#[cfg(feature = "cron")]
fn longest_gap(ticks: &[u64]) -> u64 {
    ticks.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
}

/// Reads the replies to these requests, or `None` where they have not the shape of some.
pub(super) fn read_replies(mut values: &[i64], requests: &[Request<'_>]) -> Option<Vec<Reply>> {
    values = values.get(lua::REPLY_HEAD..)?;
    let mut replies = Vec::with_capacity(requests.len());
    for request in requests {
        let reported = if request.report { request.policy.rules().len() } else { 0 };
        let (reply, rest) = values.split_at_checked(lua::REPLY_FIELDS + lua::REPORT_FIELDS * reported)?;
        replies.push(read_reply(reply)?);
        values = rest;
    }
    values.is_empty().then_some(replies)
}

fn read_reply(values: &[i64]) -> Option<Reply> {
    let (&[rule, wait_us], standings) = values.split_first_chunk::<{ lua::REPLY_FIELDS }>()?;
    let verdict = match (rule, wait_us) {
        (lua::OFF_THE_CLOCK, _) => return Some(Reply::OffTheClock),
        (lua::UNREADABLE, _) => return Some(Reply::Unreadable),
        (lua::ADMITTED, 0) => Verdict::Admitted,
        (1.., lua::NEVER) => Verdict::Denied { rule: index(rule)?, retry_after: None },
        (1.., 1..) => Verdict::Denied { rule: index(rule)?, retry_after: Some(micros(wait_us)?) },
        _ => return None,
    };
    let standings = standings.chunks_exact(lua::REPORT_FIELDS).map(|pair| {
        let &[remaining, reset_us] = pair else { return None };
        Some(Standing { remaining: u64::try_from(remaining).ok()?, reset: micros(reset_us)? })
    });
    Some(Reply::Answer(Answer { verdict, standings: standings.collect::<Option<_>>()? }))
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
    use crate::Policy;

    fn read(values: &[i64], report: bool) -> Option<Vec<Reply>> {
        let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(1))).build().unwrap();
        read_replies(values, &[Request { policy: &policy, keys: &[], cost: 1, report }])
    }

    fn answer(verdict: Verdict, standings: Vec<Standing>) -> Vec<Reply> {
        vec![Reply::Answer(Answer { verdict, standings })]
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
        assert_eq!(read(&[7, -1, 0], false), Some(vec![Reply::OffTheClock]));
        assert_eq!(read(&[7, -2, 0], false), Some(vec![Reply::Unreadable]));
    }

    #[test]
    fn a_reply_of_another_shape_is_refused() {
        for broken in [&[][..], &[7], &[7, 0], &[7, 0, 5], &[7, 1, 0], &[7, -3, 5], &[7, 1, -2], &[7, 0, 0, 0]] {
            assert_eq!(read(broken, false), None, "{broken:?}");
        }
        assert_eq!(read(&[7, 0, 0, 3, -5], true), None);
        assert_eq!(read(&[7, 0, 0, 3], true), None);
    }
}
