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
    let replies = requests.iter().zip(waits).map(|(request, wait_us)| reply(request.policy, *wait_us, at_us));
    Some((at_us, replies.collect()))
}

fn reply(policy: &Policy, wait_us: i64, at_us: u64) -> Reply {
    match u64::try_from(wait_us) {
        // Another request was paused, so that nothing was decided.
        Ok(0) => Reply::AskAgain,
        Ok(wait_us) => Reply::Answer(answer(policy, wait_us, at_us)),
        Err(_) => Reply::Unreadable,
    }
}

/// The answer to a request whose subject is paused for that long.
pub(crate) fn answer(policy: &Policy, wait_us: u64, at_us: u64) -> Answer {
    Answer::new(Outcome::Paused { retry_after: Wait::us(bounded_us(policy, wait_us)) }, Report::default(), at_us)
}

/// Returns for how long a stored pause is honoured: the process that has stored it may know a longer longest pause.
pub(crate) fn bounded_us(policy: &Policy, left_us: u64) -> u64 {
    policy.longest_pause().map_or(left_us, |longest| left_us.min(micros::rounded_up(longest)))
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
        let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(1))).build().unwrap();
        let requests = [Call::new(&policy, &[], CallOptions::PLAIN); 3];
        let replies = vec![Reply::AskAgain, Reply::Answer(answer(&policy, 5, 7)), Reply::Unreadable];
        assert_eq!(read(&packed(&[lua::PAUSED, 7, 0, 5, -1]), &requests), Some((7, replies)));
        assert_eq!(read(&packed(&[lua::PAUSED, 7, 0, 5]), &requests), None);
        assert_eq!(read(&packed(&[7, lua::PAUSED, 5]), &requests[..1]), None);
    }
}
