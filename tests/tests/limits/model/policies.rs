//! Random policies.

use std::sync::LazyLock;
use std::time::Duration;

use fastrand::Rng;
use tallygate::{Ban, Error, Policy, Role, Rule, Schedule, TokenBucket};
use tallygate_harness::clocked::START_US;
use tallygate_harness::lifetime::lifetime;
use tallygate_harness::model::{Plan, UNITS};

const SCHEDULES: [(&str, &str); 7] = [
    ("* * * * * *", "UTC"),
    ("*/7 * * * * *", "UTC"),
    ("*/30 * * * * *", "UTC"),
    ("15 * * * * *", "Asia/Kolkata"),
    ("0 0 * * * *", "UTC"),
    ("0 0 6 * * MON-FRI", "Asia/Shanghai"),
    ("0 30 2 * * *", "Europe/Berlin"),
];

/// The labels of a call's subjects; the main one has none.
pub(crate) const LABELS: [Option<&str>; 3] = [None, Some("network"), Some("all")];

/// How long leases last: a sequence with concurrency limits takes less than half of that, so that none is renewed.
pub(crate) const LEASE: Duration = Duration::from_secs(3_600);

/// Whether concurrent calls are limited, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concurrency {
    Limited,
    Unlimited,
}

/// A policy, and what the model knows of it.
#[derive(Clone)]
pub(crate) struct Version {
    pub(crate) policy: Policy,
    pub(crate) plan: Plan,
    /// Which of the call's subjects each rule counts.
    pub(crate) subjects: Vec<usize>,
}

/// Returns versions of one policy: the same rules, with other counts. No rule remembers for less than `shortest`.
pub(crate) fn versions(random: &mut Rng, shortest: Duration, subjects: usize, running: Concurrency) -> Vec<Version> {
    loop {
        let scale = scale(random, shortest);
        let units = units(random);
        let mut rules: Vec<_> =
            rules(random, scale, &units).into_iter().map(|rule| (random.usize(..subjects), rule)).collect();
        if running == Concurrency::Limited {
            for subject in 0..random.usize(1..=subjects) {
                let place = random.usize(..=rules.len());
                rules.insert(place, (subject, Rule::concurrency(random.u64(1..6), LEASE)));
            }
        }
        let ban = random.bool().then(|| Ban::new(random.u64(1..6), per(random, scale), per(random, scale)));
        let Ok(first) = policy(&rules, ban) else { continue };
        let others: Vec<_> = (0..random.usize(0..3)).map(|_| recounted(&first, random, shortest)).collect();
        let all: Vec<_> = [first].into_iter().chain(others).collect();
        if all.iter().all(|policy| remember(policy.rules(), shortest)) {
            let subjects: Vec<_> = rules.into_iter().map(|(subject, _)| subject).collect();
            return all.into_iter().map(|policy| Version::new(policy, subjects.clone())).collect();
        }
    }
}

/// Returns a policy whose rules count one subject, and that bans nobody.
pub(crate) fn alone(random: &mut Rng, shortest: Duration) -> Policy {
    loop {
        let scale = scale(random, shortest);
        let units = units(random);
        let Ok(policy) = Policy::builder("model").rules(rules(random, scale, &units)).build() else { continue };
        if remember(policy.rules(), shortest) {
            return policy;
        }
    }
}

/// Returns rules that may override those of a policy: its own with other counts, or others. Now and then one is closed.
pub(crate) fn overriding(random: &mut Rng, shortest: Duration, version: &Version) -> Vec<Rule> {
    let own = recounted(&version.policy, random, shortest);
    let of_main = own.rules().iter().zip(&version.subjects).filter(|(_, subject)| **subject == 0);
    let own: Vec<_> = of_main.map(|(rule, _)| rule.clone()).collect();
    let units: Vec<_> = version.policy.units().map(str::to_owned).collect();
    let mut candidates = (0..).map(|tries| {
        let scale = scale(random, shortest);
        let mut rules = if tries == 0 && random.bool() { own.clone() } else { rules(random, scale, &units) };
        if random.u8(0..4) == 0
            && let Some(rule) = random.choice(&mut rules)
        {
            *rule = rule.clone().with_count(0);
        }
        rules
    });
    candidates.find(|rules| remember(rules, shortest) && is_sound(rules)).unwrap()
}

impl Version {
    fn new(policy: Policy, subjects: Vec<usize>) -> Self {
        let rules = subjects.iter().copied().zip(policy.rules().iter().cloned()).collect();
        Self { plan: Plan::new(rules, policy.ban()), policy, subjects }
    }
}

fn policy(rules: &[(usize, Rule)], ban: Option<Ban>) -> Result<Policy, Error> {
    let mut builder = Policy::builder("model");
    for (subject, rule) in rules {
        builder = match LABELS[*subject] {
            None => builder.rule(rule.clone()),
            Some(label) => builder.rule_on(label, rule.clone()),
        };
    }
    if let Some(ban) = ban { builder.ban(ban) } else { builder }.build()
}

/// Tells whether rules may override others: those that are not closed would make a policy.
fn is_sound(rules: &[Rule]) -> bool {
    let open: Vec<_> = rules.iter().filter(|rule| rule.count() > 0).cloned().collect();
    !rules.is_empty() && (open.is_empty() || Policy::builder("sound").rules(open).build().is_ok())
}

fn remember(rules: &[Rule], shortest: Duration) -> bool {
    rules.iter().all(|rule| lifetime(rule, START_US) >= shortest)
}

fn recounted(policy: &Policy, random: &mut Rng, shortest: Duration) -> Policy {
    let recount = |rule: &Rule| match (rule.role(), random.u8(0..12)) {
        (_, 0) => 0,
        (Role::Duplicate, _) => 1,
        _ => {
            let count = random.u64(1..=rule.count().saturating_mul(2));
            // A bucket may remember for another time then. In memory nobody can tell whether a tally is still there that
            // the last call has let expire, and another one would not.
            let remembers_alike = lifetime(&rule.clone().with_count(count), START_US) == lifetime(rule, START_US);
            if remembers_alike || !shortest.is_zero() { count } else { rule.count() }
        }
    };
    policy.with_counts(policy.rules().iter().map(recount).collect::<Vec<_>>())
}

/// Windows of one order of magnitude, so that they matter to each other.
fn scale(random: &mut Rng, shortest: Duration) -> u64 {
    if shortest.is_zero() { 10_u64.pow(random.u32(0..11)) } else { us(shortest) }
}

/// Returns random rules, each of which may count one of these units.
fn rules(random: &mut Rng, scale: u64, units: &[String]) -> Vec<Rule> {
    let duplicate = random.bool().then(|| Rule::duplicate(per(random, scale)));
    let limits: Vec<_> = (0..random.usize(1..=5 - usize::from(duplicate.is_some())))
        .map(|_| {
            let limit = limit(random, scale);
            // Half of the rules of such policies count calls.
            random.choice(units).filter(|_| random.bool()).map_or(limit.clone(), |unit| limit.counting(unit.clone()))
        })
        .collect();
    let mut rules: Vec<_> = duplicate.into_iter().chain(limits).collect();
    random.shuffle(&mut rules);
    rules
}

/// Returns the units of a policy, which most policies have not.
fn units(random: &mut Rng) -> Vec<String> {
    let number = if random.u8(0..5) < 3 { 0 } else { random.usize(1..=UNITS.len()) };
    UNITS[..number].iter().map(|unit| (*unit).to_owned()).collect()
}

fn limit(random: &mut Rng, scale: u64) -> Rule {
    let (count, per) = (count(random), per(random, scale));
    match random.u8(0..6) {
        0 | 1 => Rule::sliding_window(count.min(1 << 31), per),
        2 => Rule::sliding_counter(count.min(1 << 26), per),
        3 => Rule::fixed_window(count, per),
        4 => Rule::cron(count, schedule(random)),
        _ => bucket(random, count.min(1 << 30), per),
    }
}

fn bucket(random: &mut Rng, count: u64, per: Duration) -> Rule {
    let mut bucket = TokenBucket::new(per);
    let capacity = if random.bool() { random.u64(1..=3 * count) } else { count };
    if capacity != count {
        bucket = bucket.with_capacity(capacity);
    }
    if random.bool() {
        bucket = bucket.with_initial(random.u64(1..=capacity));
    }
    if random.bool() {
        bucket = bucket.with_reset_after(per * random.u32(1..4) + Duration::from_micros(random.u64(0..3)));
    }
    Rule::from_bucket(count, bucket)
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
