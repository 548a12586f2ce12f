//! What limiters send: policies of every kind, through the library, to a real server and to the world.

use std::time::Duration;

use fastrand::Rng;
use tallygate::testing::ManualClock;
use tallygate::{Ban, Decision, Limiter, Permit, Policy, Rule, Subject};
use tallygate_harness::clocked::{START_US, new_clock, time};
use tallygate_harness::length::cases;
use tallygate_harness::mixes::mixes;
use tallygate_harness::seed::{SEED_VARIABLE, seed};
use tallygate_harness::server::{Server, connected, patient};

use crate::witness::Witness;

/// Keys expire by the real clock: every tally is kept for longer than the test takes.
const UNIT: Duration = Duration::from_secs(600);
const CALLS: usize = 150;
const SUBJECTS: u64 = 3;
/// The count of the rule on another subject of a call.
const OTHER: u64 = 41;

#[tokio::test]
async fn what_limiters_send_has_the_same_answers() {
    let server = Server::start();
    let witness = Witness::of(&server);
    let clock = new_clock();
    let seed = seed();
    let mut random = Rng::with_seed(seed);
    for round in 0..cases(12, 120) {
        let builder = patient().prefix(format!("round-{round}")).clock(&clock).registry(round % 4 == 0);
        let limiter = connected(&builder, &witness.url()).await;
        play(&limiter, &clock, &mut random).await;
        drop(limiter);
        if let Err(differences) = witness.compared() {
            panic!("{differences}\n{SEED_VARIABLE}={seed} plays it again");
        }
    }
    assert!(witness.compared().is_ok_and(|commands| commands > cases(1_500, 15_000)));
}

/// Makes calls of some policies, and whatever else callers and operators do, at any instants.
async fn play(limiter: &Limiter, clock: &ManualClock, random: &mut Rng) {
    let policies = policies(random);
    let mut now_us = START_US;
    let mut permits: Vec<Permit> = Vec::new();
    for _ in 0..CALLS {
        now_us = another_time(now_us, random);
        clock.set(time(now_us));
        let policy = &policies[random.usize(..policies.len())];
        let subject = Subject::of(random.u64(..SUBJECTS));
        let mut check = limiter.check(policy, &subject);
        if policy.rules().iter().any(|rule| rule.count() == OTHER) {
            check = check.subject("other", &Subject::of(random.u64(..SUBJECTS)));
        }
        match random.u32(0..20) {
            0 => _ = check.reset().await.unwrap(),
            1 if policy.ban().is_some() => check.ban(UNIT).await.unwrap(),
            2 if policy.ban().is_some() => _ = check.unban().await.unwrap(),
            3 => override_rules(limiter, policy, random).await,
            4..8 if !permits.is_empty() => {
                let permit = permits.swap_remove(random.usize(..permits.len()));
                let settles = random.bool();
                let given_back = if settles { permit.settle(random.u64(..4)).await } else { permit.refund().await };
                given_back.unwrap();
            }
            kind => {
                let (cost, peeks) = (random.u64(0..4), kind % 7 == 0);
                let check = check.cost(cost).refundable();
                let check = if kind % 3 == 0 { check.report() } else { check };
                let check = if peeks { check.peek() } else { check };
                match check.await.unwrap() {
                    Decision::Allowed(permit) if cost > 0 && !peeks => permits.push(permit),
                    _ => {}
                }
            }
        }
    }
}

/// Returns policies of every kind of rule.
fn policies(random: &mut Rng) -> Vec<Policy> {
    let window = |random: &mut Rng| Rule::sliding_window(random.u64(1..40), UNIT * random.u32(1..5));
    let windows = |random: &mut Rng| (0..random.u32(1..4)).map(|_| window(random)).collect::<Vec<_>>();
    let named = |name: &str| Policy::builder(name.to_owned());
    let ban = Ban::new(random.u64(1..4), UNIT, 2 * UNIT);
    let mut policies = vec![
        named("windows").rules(windows(random)),
        named("one").rule(window(random)),
        named("twice").rule(Rule::duplicate(UNIT)).rule(window(random)),
        named("banning").rules(windows(random)).ban(ban),
        named("running").rule(Rule::concurrency(random.u64(1..4), 6 * UNIT)),
        named("shared").rule(window(random)).rule_on("other", Rule::sliding_window(OTHER, UNIT)),
    ];
    policies.extend([named("counted").rule(Rule::sliding_counter(random.u64(1..20), UNIT)).ban(ban)]);
    let built = policies.into_iter().filter_map(|policy| policy.build().ok());
    built.chain(mixes(UNIT)).collect()
}

async fn override_rules(limiter: &Limiter, policy: &Policy, random: &mut Rng) {
    let subject = Subject::of(random.u64(..SUBJECTS));
    let change = limiter.override_policy(policy.name()).allow_unknown();
    let change = if random.bool() { change.subject(&subject) } else { change };
    if random.bool() {
        _ = change.rules([Rule::sliding_window(random.u64(0..9), UNIT)]).set().await;
    } else {
        change.clear().await.unwrap();
    }
}

/// Mostly later, sometimes at the same instant, now and then earlier.
fn another_time(now_us: u64, random: &mut Rng) -> u64 {
    let unit_us = u64::try_from(UNIT.as_micros()).unwrap();
    match random.u32(0..30) {
        0..8 => now_us,
        8..20 => now_us + random.u64(..unit_us / 50),
        20..28 => now_us + random.u64(..unit_us),
        28 => now_us - random.u64(..100_000),
        _ => now_us - random.u64(..unit_us),
    }
}
