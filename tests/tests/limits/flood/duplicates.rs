//! Duplicates whose subjects others replace.

use std::time::Duration;

use futures_util::FutureExt as _;
use tallygate::{Policy, Rule, Subject};

use super::{HOUR, Memory, invented};

const PER: Duration = Duration::from_secs(60);
const CLIENTS: usize = 20;

/// A rule against duplicates alone, and beside others.
fn policies() -> [Policy; 4] {
    let builder = || Policy::builder("p").rule(Rule::duplicate(PER));
    let tokens = Rule::sliding_window(1 << 30, HOUR).counting("tokens");
    let built = [
        builder(),
        builder().rule(Rule::sliding_window(1_000, HOUR)),
        builder().rule(Rule::token_bucket(1_000, HOUR)),
        builder().rule(tokens),
    ];
    built.map(|builder| builder.build().unwrap())
}

fn admits(memory: &Memory, policy: &Policy, subject: &Subject) -> bool {
    let check = memory.limiter.check(policy, subject);
    let check = if policy.units().next().is_some() { check.cost_of("tokens", 3) } else { check };
    check.into_future().now_or_never().unwrap().unwrap().is_allowed()
}

#[test]
fn a_flood_of_any_size_lets_no_duplicate_through() {
    for (max_subjects, times) in [(1, 100), (64, 1), (64, 10), (64, 100), (2_000, 30)] {
        for policy in policies() {
            let memory = Memory::of(max_subjects);
            let clients: Vec<_> = (0..CLIENTS).map(|number| Subject::of("client").and(number)).collect();
            // With one place, those before may share what they have left.
            let called: Vec<_> = clients.iter().filter(|client| admits(&memory, &policy, client)).collect();
            assert!(!called.is_empty());
            for number in 0..times * max_subjects {
                admits(&memory, &policy, &invented(number));
            }
            memory.pass(PER / 2);
            assert!(
                called.iter().all(|client| !admits(&memory, &policy, client)),
                "{max_subjects}, {times}: {policy:?}"
            );
            // Later, nothing is left of them, and others share nothing.
            memory.pass(2 * HOUR);
            assert!(admits(&memory, &policy, called[0]));
        }
    }
}

#[test]
fn a_replaced_subject_is_known_for_a_duplicate_as_long_as_it_would_be_beside_a_longer_window() {
    let policy = &policies()[1];
    let (memory, client) = (Memory::of(64), Subject::of("client"));
    assert!(admits(&memory, policy, &client));
    for number in 0..128 {
        admits(&memory, policy, &invented(number));
    }
    memory.pass(Duration::from_millis(59_999));
    assert!(!admits(&memory, policy, &client));
    // Times are rounded up, by the length of the longest window.
    memory.pass(Duration::from_secs(1));
    assert!(admits(&memory, policy, &client));
}
