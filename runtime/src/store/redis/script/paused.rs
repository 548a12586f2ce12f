//! Requests whose subjects may be paused: the scripts look for the pauses first, as `paused.lua` says.

use tallygate_lua as lua;

use super::wire::{Reply, integers};
use crate::call::Call;
use crate::decision::{Report, Wait};
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
    Some((at_us, waits.iter().map(|wait_us| reply(*wait_us, at_us)).collect()))
}

fn reply(wait_us: i64, at_us: u64) -> Reply {
    match u64::try_from(wait_us) {
        // Another request was paused, so that nothing was decided.
        Ok(0) => Reply::AskAgain,
        Ok(wait_us) => Reply::Answer(answer(wait_us, at_us)),
        Err(_) => Reply::Unreadable,
    }
}

/// The answer to a request whose subject is paused for that long.
pub(crate) fn answer(wait_us: u64, at_us: u64) -> Answer {
    Answer::new(Outcome::Paused { retry_after: Wait::us(wait_us) }, Report::default(), at_us)
}

/// Returns how many microseconds a stored pause still lasts; `None` if the value is no pause.
pub(crate) fn left_us(value: &[u8], now_us: u64) -> Option<u64> {
    if value.is_empty() {
        return Some(0);
    }
    let times = integers(value.get(..lua::PAUSE_BYTES)?)?;
    let [since_us, ends_us] = times[..] else { return None };
    let [since_us, ends_us] = [u64::try_from(since_us).ok()?, u64::try_from(ends_us).ok()?];
    Some(if since_us <= now_us.saturating_add(lua::STANDSTILL) { ends_us.saturating_sub(now_us) } else { 0 })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::Rule;

    use super::*;
    use crate::call::CallOptions;
    use crate::policy::Policy;

    fn packed(values: &[i64]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_be_bytes()[1..].to_vec()).collect()
    }

    #[test]
    fn each_request_is_paused_or_asked_again_and_other_answers_are_left() {
        let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(1))).build().unwrap();
        let requests = [Call::new(&policy, &[], CallOptions::PLAIN); 3];
        let replies = vec![Reply::AskAgain, Reply::Answer(answer(5, 7)), Reply::Unreadable];
        assert_eq!(read(&packed(&[lua::PAUSED, 7, 0, 5, -1]), &requests), Some((7, replies)));
        assert_eq!(read(&packed(&[lua::PAUSED, 7, 0, 5]), &requests), None);
        assert_eq!(read(&packed(&[7, lua::PAUSED, 5]), &requests[..1]), None);
    }

    #[test]
    fn a_stored_pause_ends_or_is_forgotten_when_the_clock_was_set_back() {
        let value = packed(&[1_000_000, 3_000_000]);
        assert_eq!(left_us(&value, 2_000_000), Some(1_000_000));
        assert_eq!(left_us(&value, 3_000_000), Some(0));
        assert_eq!(left_us(&value, 500_000), Some(0));
        assert_eq!(left_us(b"", 0), Some(0));
        assert_eq!(left_us(b"x", 0), None);
    }
}
