//! Properties that are checked without the model.

use std::time::Duration;

use fastrand::Rng;
use tallygate::{Algorithm, Decision, Policy, Role, Rule, Subject};
use tallygate_harness::clocked::{START_US, time};

use crate::model::policies;
use crate::model::sequence::Stage;

const CALLS: usize = 80;
const MICROSECOND: Duration = Duration::from_micros(1);

/// Somebody who calls now and then, under rules that never change.
struct Caller<'a> {
    stage: &'a Stage,
    random: Rng,
    policy: Policy,
    subject: Subject,
    now_us: u64,
}

impl<'a> Caller<'a> {
    fn new(stage: &'a Stage, seed: u64, shortest: Duration) -> Self {
        let mut random = Rng::with_seed(seed);
        let policy = policies::alone(&mut random, shortest);
        Self { stage, random, policy, subject: Subject::of("law").and(seed), now_us: START_US }
    }

    async fn call(&self, cost: u64) -> Decision {
        self.stage.clock.set(time(self.now_us));
        let counts_calls = |rule: &Rule| rule.role() == Role::Limit && rule.unit().is_none();
        let is_paid_in_calls = self.policy.units().next().is_none() || self.policy.rules().iter().any(counts_calls);
        let calls = if is_paid_in_calls { cost } else { cost.min(1) };
        let check = self.stage.limiter.check(&self.policy, &self.subject).cost(calls);
        self.policy.units().fold(check, |check, unit| check.cost_of(unit, cost)).await.expect("the backend answers")
    }

    /// Lets some of a rule's time pass, and returns a cost that may fit.
    fn pause(&mut self) -> u64 {
        let rule = self.random.choice(self.policy.rules()).unwrap();
        let (per_us, limit) = (rule.per().map_or(60_000_000, us), rule.capacity().unwrap_or(rule.count()));
        self.now_us += self.random.u64(0..=per_us / 3);
        if self.random.bool() { 1 } else { self.random.u64(0..=limit) }
    }
}

/// A call that is denied is denied until one microsecond before its `retry_after`, and then admitted. Returns how often this
/// was seen.
pub(crate) async fn retry_after_is_exact(stage: &Stage, seed: u64, shortest: Duration) -> u64 {
    let mut caller = Caller::new(stage, seed, shortest);
    let mut waits = 0;
    for _ in 0..CALLS {
        let cost = caller.pause();
        let Decision::Denied(denial) = caller.call(cost).await else { continue };
        let Some(wait) = denial.retry_after() else { continue };
        caller.now_us += us(wait) - 1;
        match caller.call(cost).await {
            Decision::Denied(denial) => {
                assert_eq!(denial.retry_after(), Some(MICROSECOND), "{seed}: {:?}", caller.policy);
            }
            Decision::Allowed(_) => panic!("{seed}: admitted too early by {:?}", caller.policy),
        }
        caller.now_us += 1;
        assert!(caller.call(cost).await.is_allowed(), "{seed}: denied too long by {:?}", caller.policy);
        waits += 1;
    }
    waits
}

/// In no window that a sliding rule looks at is more than its count. Returns how many windows were full.
pub(crate) async fn no_window_holds_more_than_count(stage: &Stage, seed: u64, shortest: Duration) -> u64 {
    let mut caller = Caller::new(stage, seed, shortest);
    let mut hits = Vec::new();
    let mut full = 0;
    for _ in 0..CALLS {
        let cost = caller.pause();
        if !caller.call(cost).await.is_allowed() {
            continue;
        }
        hits.push((caller.now_us, cost));
        // The fullest windows end with a hit, and every hit has its turn.
        for rule in caller.policy.rules() {
            let Algorithm::SlidingWindow { per } = rule.algorithm() else { continue };
            let within = hits.iter().filter(|(at_us, _)| at_us + us(*per) > caller.now_us);
            let weight: u64 = within.map(|(_, cost)| weight(rule, *cost)).sum();
            assert!(weight <= rule.count(), "{seed}: {weight} within {rule} of {:?}", caller.policy);
            full += u64::from(weight == rule.count());
        }
    }
    full
}

fn weight(rule: &Rule, cost: u64) -> u64 {
    if rule.role() == Role::Duplicate { cost.min(1) } else { cost }
}

fn us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}
