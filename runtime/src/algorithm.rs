//! The algorithms of rules. The file of each one has all that this crate knows of it, in memory and on the wire.

mod concurrency;
mod counting;
#[cfg(feature = "cron")]
mod cron;
mod fixed_window;
mod sliding_counter;
mod sliding_window;
mod token_bucket;

use tallygate_rules::{Algorithm, Rule};

use self::concurrency::ConcurrentCalls;
#[cfg(feature = "redis")]
pub(crate) use self::counting::pack_integer;
pub(crate) use self::counting::{
    Cell, Celled, CostChange, Counting, DecidedByCell, Kept, Quota, Remnant, Span, Window,
};
#[cfg(feature = "cron")]
pub(crate) use self::cron::Ticks;
#[cfg(feature = "cron")]
use self::cron::WindowsOfSchedule;
use self::fixed_window::WindowFromFirstHit;
use self::sliding_counter::Slots;
#[cfg(feature = "redis")]
pub(crate) use self::sliding_window::search_ns;
use self::token_bucket::Bucket;

/// Calls `using` with the algorithm of a rule.
// A closure takes the algorithm, which is not returned: each arm knows its type, so no call is indirect.
#[inline]
pub(crate) fn with<T>(rule: &Rule, using: impl FnOnce(&dyn Counting) -> T) -> T {
    match rule.algorithm() {
        Algorithm::SlidingWindow { per } => using(&Window::new(rule, *per)),
        Algorithm::SlidingCounter { per } => using(&Slots::new(rule, *per)),
        Algorithm::FixedWindow { per } => using(&WindowFromFirstHit::new(rule, *per)),
        #[cfg(feature = "cron")]
        Algorithm::Cron { schedule } => using(&WindowsOfSchedule::new(rule, schedule)),
        Algorithm::TokenBucket(bucket) => using(&Bucket::new(rule.count(), *bucket)),
        Algorithm::Concurrency { lease } => using(&ConcurrentCalls::new(rule, *lease)),
        // All crates have one version, so there is no other algorithm. It would admit nothing.
        _ => using(&Window { place: 0, count: 0, per_us: 0, is_duplicate: false }),
    }
}

#[cfg(all(test, feature = "redis"))]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_has_an_arm_and_a_letter_of_its_own() {
        let mut letters = Vec::new();
        for rule in Rule::of_each_algorithm() {
            let mut packed = Vec::new();
            with(&rule, |counting| counting.pack(&mut packed, &mut [].iter()));
            assert!(!letters.contains(&packed[0]), "{rule}");
            letters.push(packed[0]);
        }
    }
}
