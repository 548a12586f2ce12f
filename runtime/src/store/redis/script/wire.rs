//! Reads the replies of scripts, as the headers of `decide.lua` and `paused.lua` describe them.

use tallygate_lua as lua;

use crate::algorithm::Quota;
use crate::call::{Call, Scope};
use crate::decision::{Report, Wait};
use crate::micros;
use crate::policy::Policy;
use crate::store::answer::{self, Answer, Outcome};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Answer(Answer),
    /// The clock of the server has changed: the ticks of the request are not around its time, or one call cannot forget
    /// all future entries. Nothing was charged.
    AskAgain,
    /// A tally cannot be read. Nothing was charged. If the request is sent alone, the server says why.
    Unreadable,
}

/// Reads the integers of a reply; `None` if the last one is incomplete.
pub(crate) fn integers(reply: &[u8]) -> Option<Vec<i64>> {
    let (integers, rest) = reply.as_chunks::<{ lua::INTEGER_BYTES }>();
    rest.is_empty().then(|| integers.iter().copied().map(integer).collect())
}

fn integer(bytes: [u8; lua::INTEGER_BYTES]) -> i64 {
    let mut upper = [0; 8];
    upper[..lua::INTEGER_BYTES].copy_from_slice(&bytes);
    // The bytes are shifted down from the top, which keeps the sign.
    i64::from_be_bytes(upper) >> (8 * (upper.len() - lua::INTEGER_BYTES))
}

/// Reads the server's time and the replies to these requests; `None` if the reply is malformed.
pub(crate) fn read(reply: &[u8], requests: &[Call<'_>]) -> Option<(u64, Vec<Reply>)> {
    let values = integers(reply)?;
    Some((server_us(&values)?, read_replies(&values, requests)?))
}

/// Reads the replies to these requests; `None` if they are malformed.
fn read_replies(mut values: &[i64], requests: &[Call<'_>]) -> Option<Vec<Reply>> {
    let mut replies = Vec::with_capacity(requests.len());
    for request in requests {
        let (&fields, rest) = values.split_first_chunk::<{ lua::REPLY_FIELDS }>()?;
        let [_, code, _] = fields;
        let (lapse, rest) =
            rest.split_at_checked(usize::from(matches!(request.scope, Scope::Part(_) | Scope::Denial)))?;
        let is_decided = !matches!(code, lua::ASK_AGAIN | lua::UNREADABLE);
        let reported = if request.options.report && is_decided { request.rules() } else { 0 };
        let (quotas, rest) = rest.split_at_checked(lua::REPORT_FIELDS * reported)?;
        replies.push(read_reply(*request, fields, lapse, quotas)?);
        values = rest;
    }
    values.is_empty().then_some(replies)
}

fn read_reply(
    request: Call<'_>,
    [at_us, code, wait_us]: [i64; lua::REPLY_FIELDS],
    lapse: &[i64],
    quotas: &[i64],
) -> Option<Reply> {
    let at_us = u64::try_from(at_us).ok()?;
    let lapse_us = lapse.first().copied().unwrap_or(lua::NEVER);
    let (retry_after, lapse) = (read_wait(wait_us)?, read_wait(lapse_us)?);
    let outcome = match (code, wait_us) {
        (lua::ASK_AGAIN, _) => return Some(Reply::AskAgain),
        (lua::UNREADABLE, _) => return Some(Reply::Unreadable),
        (lua::ADMITTED, 0) => Outcome::Admitted,
        (_, 0) => return None,
        (lua::BANNED, _) => Outcome::Banned { retry_after },
        (0.., _) => Outcome::denied(position(request, code)?, retry_after),
        _ => return None,
    };
    let quotas = quotas.chunks_exact(lua::REPORT_FIELDS).map(|reported| {
        let &[remaining, reset_us, more_us] = reported else { return None };
        let [remaining, reset_us] = [remaining, reset_us].map(|reported| u64::try_from(reported).ok());
        Some(Quota::new(remaining?, reset_us?).with_wait(read_wait(more_us)?))
    });
    let report = answer::report(request.policy, request.first_place(), quotas.collect::<Option<_>>()?);
    Some(Reply::Answer(Answer { lapse, ..Answer::new(outcome, report, at_us) }))
}

pub(crate) fn server_us(values: &[i64]) -> Option<u64> {
    values.first().and_then(|&us| u64::try_from(us).ok())
}

/// Returns the position of a rule in its policy. The script counts through the rules of all groups of the request.
fn position(request: Call<'_>, code: i64) -> Option<usize> {
    let place = usize::try_from(code).ok().filter(|&place| place < request.rules())?;
    Some(request.policy.position(request.first_place() + place))
}

fn read_wait(us: i64) -> Option<Wait> {
    if us == lua::NEVER { Some(Wait::NEVER) } else { u64::try_from(us).ok().map(Wait::us) }
}

/// Reads the answer to requests of which at least one is paused, as `paused.lua` gives it: the server's time, and a reply to each request. `None`
/// for any other answer.
pub(crate) fn read_paused(answer: &[u8], requests: &[Call<'_>]) -> Option<(u64, Vec<Reply>)> {
    let values = integers(answer)?;
    let [lua::PAUSED, now_us, waits @ ..] = &*values else { return None };
    if waits.len() != requests.len() {
        return None;
    }
    let at_us = u64::try_from(*now_us).ok()?;
    let replies = requests.iter().zip(waits).map(|(request, left)| paused_reply(request.policy, *left, at_us));
    Some((at_us, replies.collect()))
}

fn paused_reply(policy: &Policy, left: i64, at_us: u64) -> Reply {
    match left {
        lua::NEVER => Reply::Unreadable,
        left => match pause_outcome(policy, left) {
            // A pause was in the way of another request, so that nothing was decided.
            Outcome::Admitted => Reply::AskAgain,
            outcome => Reply::Answer(Answer::new(outcome, Report::default(), at_us)),
        },
    }
}

/// Returns what a pause makes of a call, by what a script says of it: admitted if it is not in the way.
pub(crate) fn pause_outcome(policy: &Policy, left: i64) -> Outcome {
    if left <= lua::PROBE {
        return Outcome::Probing { retry_after: Wait::us(lua::PROBE.abs_diff(left)) };
    }
    match u64::try_from(left) {
        Err(_) | Ok(0) => Outcome::Admitted,
        // The process that has stored it may know a longer longest pause.
        Ok(left_us) => Outcome::Paused { retry_after: Wait::us(left_us.min(longest_pause_us(policy))) },
    }
}

/// The longest pause of a policy in microseconds; 0 if it cannot be paused.
pub(crate) fn longest_pause_us(policy: &Policy) -> u64 {
    policy.longest_pause().map_or(0, micros::rounded_up)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use tallygate_rules::Rule;

    use crate::call::CallOptions;
    use crate::decision::RuleStatus;
    use crate::subject::Subject;

    fn rule() -> Rule {
        Rule::sliding_window(1, Duration::from_secs(1))
    }

    fn read(values: &[i64], report: bool) -> Option<Vec<Reply>> {
        read_of(&Policy::builder("p").rule(rule()).build().unwrap(), values, report)
    }

    fn read_of(policy: &Policy, values: &[i64], report: bool) -> Option<Vec<Reply>> {
        let options = CallOptions { report, ..CallOptions::PLAIN };
        let subjects = vec![Subject::everyone().key(); policy.groups().len()];
        read_replies(values, &[Call::new(policy, &subjects, options)])
    }

    fn answer(outcome: Outcome, quotas: Vec<Quota>) -> Vec<Reply> {
        let report = quotas.into_iter().map(|quota| RuleStatus::new(0, rule(), quota)).collect::<Vec<_>>().into();
        vec![Reply::Answer(Answer::new(outcome, report, 7))]
    }

    #[test]
    fn a_reply_is_read_whole() {
        let second = Wait::us(1_000_000);
        let denied = |retry_after| Outcome::Denied { rule: 0, retry_after };
        assert_eq!(read(&[7, -1, 0], false).unwrap(), answer(Outcome::Admitted, vec![]));
        assert_eq!(read(&[7, 0, 1_000_000], false).unwrap(), answer(denied(second), vec![]));
        assert_eq!(read(&[7, 0, -1], false).unwrap(), answer(denied(Wait::NEVER), vec![]));
        assert_eq!(read(&[7, -1, 0, 3, 5, 0], true).unwrap(), answer(Outcome::Admitted, vec![Quota::new(3, 5)]));
        for (more_us, more) in [(4, Wait::us(4)), (-1, Wait::NEVER)] {
            let used_up = Quota::new(0, 5).with_wait(more);
            assert_eq!(read(&[7, -1, 0, 0, 5, more_us], true).unwrap(), answer(Outcome::Admitted, vec![used_up]));
        }
        for (wait_us, retry_after) in [(1_000_000, second), (-1, Wait::NEVER)] {
            let banned = Outcome::Banned { retry_after };
            assert_eq!(read(&[7, -4, wait_us], false).unwrap(), answer(banned, vec![]));
            assert_eq!(read(&[7, -4, wait_us, 3, 5, 0], true).unwrap(), answer(banned, vec![Quota::new(3, 5)]));
        }
        assert_eq!(read(&[7, -2, 0], true), Some(vec![Reply::AskAgain]));
        assert_eq!(read(&[7, -3, 0], true), Some(vec![Reply::Unreadable]));
    }

    #[test]
    fn a_rule_is_known_by_its_position_in_the_policy() {
        let builder =
            Policy::builder("p").rule_on("network", rule()).rule(Rule::sliding_window(2, Duration::from_secs(2)));
        let policy = builder.build().unwrap();
        // The main subject comes first. Its only rule is the second of the policy.
        for (code, position) in [(0, 1), (1, 0)] {
            let denied = Outcome::denied(position, Wait::NEVER);
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
        for broken in [&[7, -1, 0, 3, -5, 0][..], &[7, -1, 0, -3, 5, 0], &[7, -1, 0, 0, 5, -2], &[7, -1, 0, 3, 5]] {
            assert_eq!(read(broken, true), None, "{broken:?}");
        }
    }

    fn packed(values: &[i64]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_be_bytes()[1..].to_vec()).collect()
    }

    #[test]
    fn each_request_is_paused_or_asked_again_and_other_answers_are_left() {
        let (second, longest) = (Duration::from_secs(1), Duration::from_secs(9));
        let policy = Policy::builder("p").rule(Rule::sliding_window(1, second)).longest_pause(longest).build().unwrap();
        let requests = [Call::new(&policy, &[], CallOptions::PLAIN); 6];
        let answer = |outcome| Reply::Answer(Answer::new(outcome, Report::default(), 7));
        let paused = |us| answer(Outcome::Paused { retry_after: Wait::us(us) });
        let probing = |us| answer(Outcome::Probing { retry_after: Wait::us(us) });
        let replies = vec![Reply::AskAgain, paused(5), Reply::Unreadable, probing(0), probing(3), paused(9_000_000)];
        assert_eq!(
            read_paused(&packed(&[lua::PAUSED, 7, 0, 5, -1, -2, -5, i64::pow(2, 40)]), &requests),
            Some((7, replies))
        );
        assert_eq!(read_paused(&packed(&[lua::PAUSED, 7, 0, 5]), &requests), None);
        assert_eq!(read_paused(&packed(&[7, lua::PAUSED, 5]), &requests[..1]), None);
    }
}
