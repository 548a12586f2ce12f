//! Threads that take of one part, in every interleaving that shuttle plays.

use std::sync::Arc;

use shuttle::thread;

use super::part::Part;
use crate::clock::Clock;
use crate::decision::{AdmittedAt, Report};
use crate::sync::interleaved::explore;

const UNITS: u64 = 3;

#[test]
fn threads_use_and_give_back_exactly_what_was_taken() {
    explore(|| {
        let part = Arc::new(Part::new(UNITS, u64::MAX, AdmittedAt::Once(0), Report::default()));
        let takers = [1, 2].map(|cost| {
            let part = Arc::clone(&part);
            thread::spawn(move || {
                let clock = Clock::tokio();
                (0..2).filter(|_| part.take(cost, &clock).is_some()).count() as u64 * cost
            })
        });
        let given_back = part.end();
        let used: u64 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
        assert_eq!(used + given_back, UNITS);
    });
}
