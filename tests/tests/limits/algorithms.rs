//! The most that each algorithm admits in any window, as `runtime/guide/algorithms.md` says.

use std::time::{Duration, UNIX_EPOCH};

use tallygate::simulation::{Simulation, TraceCall};
use tallygate::{Policy, Rule, Schedule, Subject};

const COUNT: u64 = 100;
const PER: Duration = Duration::from_secs(10);
const PER_MS: u64 = 10_000;

/// Returns the most calls that a rule admits in any window, of calls at these milliseconds after a full minute.
fn most(rule: Rule, calls_ms: impl IntoIterator<Item = u64>) -> usize {
    let start = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let mut simulation = Simulation::new(&Policy::builder("worst").rule(rule).build().unwrap());
    let mut is_admitted = |ms: &u64| {
        let call = TraceCall::new(start + Duration::from_millis(*ms), Subject::everyone());
        simulation.call(&call).unwrap().is_allowed()
    };
    let admitted: Vec<_> = calls_ms.into_iter().filter(|ms| is_admitted(ms)).collect();
    let in_window = |ends: &u64| admitted.iter().filter(|ms| *ms <= ends && *ends < **ms + PER_MS).count();
    admitted.iter().map(in_window).max().unwrap()
}

/// One call, then a flood around the end of the window that it opens, and around a tick of the clock.
fn flood() -> impl Iterator<Item = u64> {
    [0].into_iter().chain(9_800..19_790)
}

#[test]
fn a_sliding_window_admits_its_count_in_any_window() {
    assert_eq!(most(Rule::sliding_window(COUNT, PER), flood()), 100);
}

#[test]
fn a_sliding_counter_admits_nearly_twice_its_count_after_calls_at_the_end_of_a_slot() {
    let most_in_flood = most(Rule::sliding_counter(COUNT, PER), flood());
    assert!((190..200).contains(&most_in_flood), "{most_in_flood}");
    // Calls that come evenly are spread as it assumes.
    assert_eq!(most(Rule::sliding_counter(COUNT, PER), (0..60_000).step_by(100)), 100);
}

#[test]
fn a_token_bucket_admits_its_capacity_and_what_flows_in() {
    let most_in_flood = most(Rule::token_bucket(COUNT, PER), flood());
    assert!((195..=200).contains(&most_in_flood), "{most_in_flood}");
}

#[test]
fn a_fixed_window_admits_twice_its_count_less_the_call_that_opened_it() {
    assert_eq!(most(Rule::fixed_window(COUNT, PER), flood()), 199);
}

#[test]
fn a_schedule_admits_twice_its_count_around_a_tick() {
    let schedule = Schedule::parse("*/10 * * * * *", "UTC").unwrap();
    assert_eq!(most(Rule::cron(COUNT, schedule), 9_800..10_200), 200);
}
