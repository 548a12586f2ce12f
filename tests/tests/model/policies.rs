//! Random policies.

use std::sync::LazyLock;
use std::time::Duration;

use fastrand::Rng;
use tallygate::{Policy, Role, Rule, Schedule, TokenBucket};
use tallygate_tests::clocked::START_US;
use tallygate_tests::lifetime::lifetime;

const SCHEDULES: [(&str, &str); 7] = [
    ("* * * * * *", "UTC"),
    ("*/7 * * * * *", "UTC"),
    ("*/30 * * * * *", "UTC"),
    ("15 * * * * *", "Asia/Kolkata"),
    ("0 0 * * * *", "UTC"),
    ("0 0 6 * * MON-FRI", "Asia/Shanghai"),
    ("0 30 2 * * *", "Europe/Berlin"),
];

/// Returns versions of one policy: the same rules, with other counts. No rule remembers for less than `shortest`.
pub(crate) fn versions(random: &mut Rng, shortest: Duration) -> Vec<Policy> {
    loop {
        let Ok(first) = Policy::builder("model").rules(rules(random, shortest)).build() else { continue };
        let others: Vec<_> = (0..random.usize(0..3)).map(|_| recounted(&first, random)).collect();
        let all: Vec<_> = [first].into_iter().chain(others).collect();
        if all.iter().flat_map(Policy::rules).all(|rule| lifetime(rule, START_US) >= shortest) {
            return all;
        }
    }
}

fn recounted(policy: &Policy, random: &mut Rng) -> Policy {
    let recount = |rule: &Rule| match (rule.role(), random.u8(0..12)) {
        (Role::Duplicate, _) => 1,
        (_, 0) => 0,
        _ => random.u64(1..=rule.count().saturating_mul(2)),
    };
    policy.with_counts(policy.rules().iter().map(recount).collect::<Vec<_>>())
}

fn rules(random: &mut Rng, shortest: Duration) -> Vec<Rule> {
    // Windows of one order of magnitude, so that they matter to each other.
    let scale = if shortest.is_zero() { 10_u64.pow(random.u32(0..11)) } else { us(shortest) };
    let duplicate = random.bool().then(|| Rule::duplicate(per(random, scale)));
    let limits: Vec<_> =
        (0..random.usize(1..=5 - usize::from(duplicate.is_some()))).map(|_| limit(random, scale)).collect();
    let mut rules: Vec<_> = duplicate.into_iter().chain(limits).collect();
    random.shuffle(&mut rules);
    rules
}

fn limit(random: &mut Rng, scale: u64) -> Rule {
    let (count, per) = (count(random), per(random, scale));
    match random.u8(0..6) {
        0 | 1 => Rule::sliding_window(count.min(400), per),
        2 => Rule::sliding_counter(count.min(1 << 26), per),
        3 => Rule::fixed_window(count, per),
        4 => Rule::cron(count, schedule(random)),
        _ => bucket(random, count.min(1 << 30), per),
    }
}

fn bucket(random: &mut Rng, count: u64, per: Duration) -> Rule {
    let mut bucket = TokenBucket::new(count, per);
    let capacity = if random.bool() { random.u64(1..=3 * count) } else { count };
    if capacity != count {
        bucket = bucket.capacity(capacity);
    }
    if random.bool() {
        bucket = bucket.initial(random.u64(1..=capacity));
    }
    if random.bool() {
        bucket = bucket.reset_after(per * random.u32(1..4) + Duration::from_micros(random.u64(0..3)));
    }
    bucket.into()
}

fn count(random: &mut Rng) -> u64 {
    match random.u8(0..12) {
        0 => random.u64(200..400),
        1 => {
            let bits = random.u32(1..53);
            random.u64(1..=1 << bits)
        }
        2 => (1 << 53) - 1,
        _ => random.u64(1..10),
    }
}

fn per(random: &mut Rng, scale: u64) -> Duration {
    let us = match random.u8(0..3) {
        0 => scale,
        1 => scale * random.u64(1..10),
        _ => random.u64(scale..=10 * scale),
    };
    Duration::from_micros(us)
}

fn schedule(random: &mut Rng) -> Schedule {
    static PARSED: LazyLock<Vec<Schedule>> =
        LazyLock::new(|| SCHEDULES.map(|(expression, zone)| Schedule::parse(expression, zone).unwrap()).into());
    random.choice(&*PARSED).unwrap().clone()
}

fn us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}
