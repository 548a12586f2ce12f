//! The clocks of the servers, and the latency.

use std::time::Duration;

use crate::admin::finding::Finding;
use crate::limiter::DEFAULT_DEADLINE;
use crate::store::{ServerFacts, Times};

/// The allowed difference between the clocks of a server and of this machine.
const HERE_US: u64 = 1_000_000;

/// The allowed differences between the clocks of two servers when a slot moves: up to the first, time stands still;
/// beyond the second, calls are forgotten.
const STANDS_STILL_US: u64 = 128_000;
const FORGETS_US: u64 = 2_000_000;

const NTP: &str = "keep the clocks together with NTP";

pub(super) fn judge(times: &Times) -> Vec<Finding> {
    vec![clock(times), latency(times.round_trip)]
}

fn clock(times: &Times) -> Finding {
    const TOPIC: &str = "clock";
    let text = match least(times.ahead_us, times.error_us) {
        0 => "the same as that of this machine".to_owned(),
        _ => format!("{} this machine", difference(times.ahead_us)),
    };
    if least(times.ahead_us, times.error_us) < HERE_US {
        return Finding::ok(TOPIC, text);
    }
    Finding::warning(TOPIC, format!("{text}; limits go by the clock of the server")).with_remedy(NTP)
}

fn latency(round_trip: Duration) -> Finding {
    const TOPIC: &str = "latency";
    let text = format!("a round trip takes {}", milliseconds(round_trip));
    if round_trip < DEFAULT_DEADLINE / 5 {
        return Finding::ok(TOPIC, text);
    }
    let text = format!("{text}, and a decision {} at most by default", milliseconds(DEFAULT_DEADLINE));
    Finding::warning(TOPIC, text).with_remedy("set a longer `deadline`, or run the program near the server")
}

/// Compares the clocks of the servers with each other.
pub(super) fn compare(servers: &[ServerFacts]) -> Vec<Option<Finding>> {
    let known = |server: &ServerFacts| server.known.as_ref().ok().map(|known| known.times);
    let earliest = servers.iter().filter_map(known).min_by_key(|times| times.ahead_us);
    servers.iter().map(|server| judge_against(&known(server)?, &earliest?)).collect()
}

/// Judges a clock against that of the server that is furthest behind.
fn judge_against(times: &Times, earliest: &Times) -> Option<Finding> {
    let ahead_us = times.ahead_us.saturating_sub(earliest.ahead_us);
    let ahead = format!("{} another server", difference(ahead_us));
    let least_us = least(ahead_us, times.error_us.saturating_add(earliest.error_us));
    if least_us <= STANDS_STILL_US {
        return None;
    }
    let found = if least_us <= FORGETS_US {
        Finding::warning("clock", format!("{ahead}: when a slot moves, windows end that much earlier or later, once"))
    } else {
        Finding::problem("clock", format!("{ahead}: when a slot moves, calls of that time are forgotten"))
    };
    Some(found.with_remedy(NTP))
}

/// Returns the least possible difference.
fn least(ahead_us: i64, error_us: u64) -> u64 {
    ahead_us.unsigned_abs().saturating_sub(error_us)
}

fn difference(ahead_us: i64) -> String {
    let time = milliseconds(Duration::from_micros(ahead_us.unsigned_abs()));
    if ahead_us < 0 { format!("{time} behind") } else { format!("{time} ahead of") }
}

fn milliseconds(time: Duration) -> String {
    let tenths = time.as_micros() / 100;
    format!("{}.{} ms", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::finding::Level;

    fn times(ahead_us: i64, error_us: u64) -> Times {
        Times { ahead_us, error_us, round_trip: Duration::from_micros(2 * error_us) }
    }

    #[test]
    fn a_clock_differs_only_if_it_certainly_does() {
        assert_eq!(clock(&times(900_000, 1_000)).level(), Level::Ok);
        assert_eq!(clock(&times(1_400_000, 500_000)).level(), Level::Ok);
        let found = clock(&times(-3_000_000, 500));
        assert_eq!(found.level(), Level::Warning);
        assert!(found.text().starts_with("3000.0 ms behind this machine"), "{found}");
    }

    #[test]
    fn clocks_of_two_servers_may_differ_by_less() {
        let level = |ahead_us| judge_against(&times(ahead_us, 500), &times(0, 500)).map(|found| found.level());
        assert_eq!(level(128_000), None);
        assert_eq!(level(500_000), Some(Level::Warning));
        assert_eq!(level(2_500_000), Some(Level::Problem));
    }

    #[test]
    fn slow_answers_are_a_warning() {
        assert_eq!(latency(Duration::from_micros(320)).to_string(), "a round trip takes 0.3 ms");
        assert_eq!(latency(Duration::from_millis(60)).level(), Level::Warning);
    }
}
