//! How long rules remember.

use std::time::Duration;

use tallygate::{Algorithm, Rule, Schedule};

/// Returns the longest time for which a rule remembers a hit. For a schedule, it is the time between its next two
/// ticks.
#[must_use]
pub fn lifetime(rule: &Rule, now_us: u64) -> Duration {
    match rule.algorithm() {
        Algorithm::SlidingCounter { per } => 2 * *per,
        Algorithm::TokenBucket(bucket) => {
            // A closed rule remembers what it admitted before.
            let count = rule.count().max(1);
            let capacity = bucket.capacity_for(count);
            let reset_after = bucket.reset_after_for(count);
            // A full bucket is like an unused one, unless an unused one has fewer tokens.
            if bucket.initial_for(count) == capacity {
                reset_after.min(bucket.fill_time_for(count))
            } else {
                reset_after
            }
        }
        Algorithm::Cron { schedule } => gap(schedule, now_us),
        Algorithm::Concurrency { lease } => *lease,
        _ => rule.per().expect("a window has a length"),
    }
}

fn gap(schedule: &Schedule, now_us: u64) -> Duration {
    let next = |us| schedule.next_tick_us(us).expect("it ticks again");
    let tick = next(now_us);
    Duration::from_micros(next(tick) - tick)
}
