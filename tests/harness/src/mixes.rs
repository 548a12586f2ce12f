//! Policies of every kind of rule, alone and together.

use std::time::Duration;

use tallygate::{Policy, Rule, Schedule, TokenBucket};

/// Returns policies of one name, with windows of about that length; schedules tick every second, or every minute where a
/// window is as long.
#[must_use]
pub fn mixes(unit: Duration) -> Vec<Policy> {
    let expression = if unit < Duration::from_secs(60) { "* * * * * *" } else { "0 * * * * *" };
    let schedule = Schedule::parse(expression, "UTC").expect("a schedule");
    let bucket = TokenBucket::new(unit).with_capacity(6);
    let alone = [
        vec![Rule::sliding_window(3, unit), Rule::sliding_window(5, 2 * unit)],
        vec![Rule::sliding_counter(4, unit)],
        vec![Rule::fixed_window(2, unit)],
        vec![Rule::cron(40, schedule)],
        vec![Rule::from_bucket(2, bucket)],
        vec![Rule::from_bucket(2, bucket.with_initial(1).with_reset_after(3 * unit))],
    ];
    let without_another_bucket = alone.iter().take(5).flatten().cloned();
    let together: Vec<_> = without_another_bucket.chain([Rule::duplicate(unit / 8)]).collect();
    alone.into_iter().chain([together]).map(policy).collect()
}

fn policy(rules: Vec<Rule>) -> Policy {
    Policy::builder("mix").rules(rules).build().expect("the rules are sound")
}
