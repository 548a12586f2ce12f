//! Requests whose subjects may be paused: the scripts look for the pauses first, as `paused.lua` says.

use tallygate_lua as lua;

use super::wire::{Reply, integers};
use crate::call::Call;
use crate::decision::{Report, Wait};
use crate::micros;
use crate::policy::Policy;
use crate::store::answer::{Answer, Outcome};

/// Whether the script is to look for the pauses of these requests. They are all alike in that.
pub(crate) fn looks_for_pauses(requests: &[Call<'_>]) -> bool {
    requests.first().is_some_and(|request| request.pause().is_some())
}

/// Reads the answer to requests of which at least one is paused: the server's time, and a reply to each request. `None`
/// for any other answer.
pub(crate) fn read(answer: &[u8], requests: &[Call<'_>]) -> Option<(u64, Vec<Reply>)> {
    let values = integers(answer)?;
    let [lua::PAUSED, now_us, waits @ ..] = &*values else { return None };
    if waits.len() != requests.len() {
        return None;
    }
    let at_us = u64::try_from(*now_us).ok()?;
    let replies = requests.iter().zip(waits).map(|(request, left)| reply(request.policy, *left, at_us));
    Some((at_us, replies.collect()))
}

fn reply(policy: &Policy, left: i64, at_us: u64) -> Reply {
    match left {
        lua::NEVER => Reply::Unreadable,
        left => match outcome(policy, left) {
            // A pause was in the way of another request, so that nothing was decided.
            Outcome::Admitted => Reply::AskAgain,
            outcome => Reply::Answer(Answer::new(outcome, Report::default(), at_us)),
        },
    }
}

/// Returns what a pause makes of a call, by what a script says of it: admitted if it is not in the way.
pub(crate) fn outcome(policy: &Policy, left: i64) -> Outcome {
    if left <= lua::PROBE {
        return Outcome::Probing { retry_after: Wait::us(lua::PROBE.abs_diff(left)) };
    }
    match u64::try_from(left) {
        Err(_) | Ok(0) => Outcome::Admitted,
        // The process that has stored it may know a longer longest pause.
        Ok(left_us) => Outcome::Paused { retry_after: Wait::us(left_us.min(longest_us(policy))) },
    }
}

/// The longest pause of a policy in microseconds; 0 if it cannot be paused.
pub(crate) fn longest_us(policy: &Policy) -> u64 {
    policy.longest_pause().map_or(0, micros::rounded_up)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::Rule;

    use super::*;
    use crate::call::CallOptions;

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
        assert_eq!(read(&packed(&[lua::PAUSED, 7, 0, 5, -1, -2, -5, i64::pow(2, 40)]), &requests), Some((7, replies)));
        assert_eq!(read(&packed(&[lua::PAUSED, 7, 0, 5]), &requests), None);
        assert_eq!(read(&packed(&[7, lua::PAUSED, 5]), &requests[..1]), None);
    }
}
