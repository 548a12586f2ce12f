//! The script's reply, as the header of `decide.lua` describes it.

use std::time::Duration;

use tallygate_lua as lua;

use crate::decision::Quota;
use crate::policy::Policy;
use crate::store::answer::{self, Answer, Outcome};
use crate::store::request::Request;

/// What the script says of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Answer(Answer),
    /// The ticks that were sent are not around the server's time.
    StaleTicks,
    /// A tally cannot be read. Nothing was charged; asked alone, the server says why.
    Unreadable,
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
        let (&[at_us, code, wait_us], rest) = values.split_first_chunk::<{ lua::REPLY_FIELDS }>()?;
        let is_decided = !matches!(code, lua::STALE_TICKS | lua::UNREADABLE);
        let reported = if request.options.report && is_decided { request.policy.rules().len() } else { 0 };
        let (quotas, rest) = rest.split_at_checked(lua::REPORT_FIELDS * reported)?;
        replies.push(read_reply(request.policy, [at_us, code, wait_us], quotas)?);
        values = rest;
    }
    values.is_empty().then_some(replies)
}

fn read_reply(policy: &Policy, [at_us, code, wait_us]: [i64; lua::REPLY_FIELDS], quotas: &[i64]) -> Option<Reply> {
    let at_us = u64::try_from(at_us).ok()?;
    let retry_after = if wait_us == lua::NEVER { None } else { Some(micros(wait_us)?) };
    let outcome = match (code, wait_us) {
        (lua::STALE_TICKS, _) => return Some(Reply::StaleTicks),
        (lua::UNREADABLE, _) => return Some(Reply::Unreadable),
        (lua::ADMITTED, 0) => Outcome::Admitted,
        (_, 0) => return None,
        (lua::BANNED, _) => Outcome::Banned { retry_after },
        (0.., _) => Outcome::Denied { rule: position(policy, code)?, retry_after },
        _ => return None,
    };
    let quotas = quotas.chunks_exact(lua::REPORT_FIELDS).map(|pair| {
        let &[remaining, reset_us] = pair else { return None };
        Some(Quota { remaining: u64::try_from(remaining).ok()?, reset: micros(reset_us)? })
    });
    let report = answer::report(policy, quotas.collect::<Option<_>>()?);
    Some(Reply::Answer(Answer { outcome, report, at_us }))
}

/// Returns the server's time.
pub(super) fn server_us(values: &[i64]) -> Option<u64> {
    values.first().and_then(|&us| u64::try_from(us).ok())
}

/// The position of a rule in its policy. The script counts the rules of all groups, one group after the other.
fn position(policy: &Policy, code: i64) -> Option<usize> {
    let place = usize::try_from(code).ok()?;
    (place < policy.rules().len()).then(|| policy.position(place))
}

fn micros(us: i64) -> Option<Duration> {
    u64::try_from(us).ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tallygate_rules::Rule;

    use crate::decision::RuleStatus;
    use crate::store::request::CallOptions;

    fn rule() -> Rule {
        Rule::sliding_window(1, Duration::from_secs(1))
    }

    fn read(values: &[i64], report: bool) -> Option<Vec<Reply>> {
        read_of(&Policy::builder("p").rule(rule()).build().unwrap(), values, report)
    }

    fn read_of(policy: &Policy, values: &[i64], report: bool) -> Option<Vec<Reply>> {
        let options = CallOptions { report, ..CallOptions::PLAIN };
        read_replies(values, &[Request { policy, subjects: &[], options }])
    }

    fn answer(outcome: Outcome, quotas: Vec<Quota>) -> Vec<Reply> {
        let report = quotas.into_iter().map(|quota| RuleStatus::new(0, rule(), quota)).collect();
        vec![Reply::Answer(Answer { outcome, report, at_us: 7 })]
    }

    #[test]
    fn a_reply_is_read_whole() {
        let second = Some(Duration::from_secs(1));
        let denied = |retry_after| Outcome::Denied { rule: 0, retry_after };
        assert_eq!(read(&[7, -1, 0], false).unwrap(), answer(Outcome::Admitted, vec![]));
        assert_eq!(read(&[7, 0, 1_000_000], false).unwrap(), answer(denied(second), vec![]));
        assert_eq!(read(&[7, 0, -1], false).unwrap(), answer(denied(None), vec![]));
        assert_eq!(read(&[7, -1, 0, 3, 5], true).unwrap(), answer(Outcome::Admitted, vec![Quota::new(3, 5)]));
        for (wait_us, retry_after) in [(1_000_000, second), (-1, None)] {
            let banned = Outcome::Banned { retry_after };
            assert_eq!(read(&[7, -4, wait_us], false).unwrap(), answer(banned, vec![]));
            assert_eq!(read(&[7, -4, wait_us, 3, 5], true).unwrap(), answer(banned, vec![Quota::new(3, 5)]));
        }
        assert_eq!(read(&[7, -2, 0], true), Some(vec![Reply::StaleTicks]));
        assert_eq!(read(&[7, -3, 0], true), Some(vec![Reply::Unreadable]));
    }

    #[test]
    fn a_rule_is_known_by_its_position_in_the_policy() {
        let builder =
            Policy::builder("p").rule_on("network", rule()).rule(Rule::sliding_window(2, Duration::from_secs(2)));
        let policy = builder.build().unwrap();
        // The main subject goes first, whose only rule is the second.
        for (code, position) in [(0, 1), (1, 0)] {
            let denied = Outcome::Denied { rule: position, retry_after: None };
            assert_eq!(read_of(&policy, &[7, code, -1], false).unwrap(), answer(denied, vec![]));
        }
        assert_eq!(read_of(&policy, &[7, 2, -1], false), None);
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
        for broken in [
            &[][..],
            &[7],
            &[7, -1],
            &[-7, -1, 0],
            &[7, -1, 5],
            &[7, 0, 0],
            &[7, 1, 5],
            &[7, -5, 5],
            &[7, -4, 0],
            &[7, -1, -1],
            &[7, 0, -2],
            &[7, -1, 0, 0],
        ] {
            assert_eq!(read(broken, false), None, "{broken:?}");
        }
        assert_eq!(read(&[7, -1, 0, 3, -5], true), None);
        assert_eq!(read(&[7, -1, 0, 3], true), None);
    }
}
