//! The scripts for windows alone decide as the one for everything: the same answers, and the same bytes.
//!
//! A call that asks for a report is decided by the script for everything, and the same call without by the other one. So
//! each call is made twice, by limiters of two prefixes.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::join_all;
use redis::Connection;
use tallygate::{Decision, Limiter, Permit, Policy, Role, Rule, Subject};
use tallygate_harness::clocked::{Clocked, START_US};
use tallygate_harness::length::cases;
use tallygate_harness::seed::seed;
use tallygate_lua::{ENTRY_BYTES, LOG_ENTRIES};

/// The prefixes of the limiters: calls without a report, and with one.
const PREFIXES: [&str; 2] = ["plain", "report"];
const SUBJECTS: usize = 3;
/// The label of a second subject of each call, and a second unit.
const LABEL: &str = "group";
const UNIT: &str = "tokens";
/// Windows of hours, so that no tally ends by the server's own clock.
const HOUR_US: u64 = 3_600_000_000;

struct Trial {
    clocked: Clocked,
    limiters: [Limiter; 2],
    connection: Connection,
    random: Rng,
    versions: Vec<Policy>,
    /// Whether the policy has rules on a second subject.
    is_grouped: bool,
    /// The permits of a call from both limiters.
    permits: Vec<[Permit; 2]>,
    wait: Duration,
    admitted: usize,
    denied: usize,
    refunded: usize,
}

/// What both limiters have to agree on: the rule that denies the call, and for how long.
fn outcome(decision: &Decision) -> Option<(usize, Duration)> {
    match decision {
        Decision::Allowed(_) => None,
        Decision::Denied(denial) => Some((denial.rule().unwrap().position(), denial.retry_after().unwrap())),
    }
}

/// A rule of some hours, or against duplicates.
fn rule(random: &mut Rng) -> Rule {
    let per = Duration::from_micros(random.u64(HOUR_US..30 * HOUR_US));
    if random.u8(0..4) == 0 { Rule::duplicate(per) } else { Rule::sliding_window(1, per).varying() }
}

fn count(random: &mut Rng) -> u64 {
    match random.u8(0..8) {
        0 => random.u64(1..=1 << 31),
        1 => random.u64(30..300),
        2 => random.u64(60_000..200_000),
        _ => random.u64(1..10),
    }
}

/// Policies with the same windows and other counts, and whether some rules are on a second subject.
fn versions(random: &mut Rng) -> (Vec<Policy>, bool) {
    let has_parts = random.bool();
    let (policy, is_grouped) = loop {
        let (mut builder, mut is_grouped) = (Policy::builder("p"), false);
        for _ in 0..random.usize(1..5) {
            let rule = rule(random);
            let part = if has_parts && rule.role() == Role::Limit { random.u8(0..4) } else { 0 };
            let rule = if part > 1 { rule.counting(UNIT) } else { rule };
            is_grouped |= part % 2 == 1;
            builder = if part % 2 == 1 { builder.rule_on(LABEL, rule) } else { builder.rule(rule) };
        }
        if let Ok(policy) = builder.build() {
            break (policy, is_grouped);
        }
    };
    let is_duplicate = |rule: &Rule| rule.role() == Role::Duplicate;
    let versions = (0..random.usize(1..4)).map(|_| {
        let counts = policy.rules().iter().map(|rule| if is_duplicate(rule) { 1 } else { count(random) });
        policy.with_counts(counts.collect::<Vec<_>>())
    });
    (versions.collect(), is_grouped)
}

impl Trial {
    async fn new(seed: u64) -> Self {
        let clocked = Clocked::start();
        let limiters = [clocked.limiter_of(PREFIXES[0]).await, clocked.limiter_of(PREFIXES[1]).await];
        let mut random = Rng::with_seed(seed);
        let (connection, (versions, is_grouped)) = (clocked.server().connection(), versions(&mut random));
        Self {
            clocked,
            limiters,
            connection,
            random,
            versions,
            is_grouped,
            permits: Vec::new(),
            wait: Duration::ZERO,
            admitted: 0,
            denied: 0,
            refunded: 0,
        }
    }

    /// Begins another sequence on an empty server.
    fn begin(&mut self) {
        self.clocked.server().ask::<()>("FLUSHALL");
        self.clocked.set(START_US);
        (self.versions, self.is_grouped) = versions(&mut self.random);
        self.permits.clear();
    }

    /// Lets time pass, none of it, or goes back.
    fn pass(&mut self, sets_back: bool) {
        let now_us = self.clocked.now_us();
        let wait_us = u64::try_from(self.wait.as_micros()).unwrap();
        let later_us = match self.random.u8(0..10) {
            0..4 => now_us,
            4 => now_us + self.random.u64(0..3),
            5 | 6 => now_us + self.random.u64(0..2 * HOUR_US),
            7 => now_us + wait_us.saturating_sub(self.random.u64(0..2)),
            8 if sets_back => now_us - self.random.u64(0..20 * HOUR_US),
            _ => now_us + self.random.u64(0..40 * HOUR_US),
        };
        self.clocked.set(later_us);
    }

    /// A call of each subject.
    fn calls(&mut self) -> [(Policy, Subject, u64); SUBJECTS] {
        std::array::from_fn(|subject| {
            let policy = self.random.choice(&self.versions).unwrap().clone();
            let counts = policy.rules().iter().filter(|rule| rule.role() == Role::Limit).map(Rule::count);
            let most = counts.min().unwrap_or(5);
            let cost = if self.random.bool() { 1 } else { self.random.u64(1..=most) };
            (policy, Subject::of(subject), cost)
        })
    }

    /// Makes some calls at once by both limiters, more than one of a subject now and then. In which order calls of a subject
    /// are decided makes no difference, as they are the same.
    async fn call(&mut self) {
        let calls = self.calls();
        let subjects: Vec<_> = (0..self.random.usize(1..8)).map(|_| self.random.usize(0..SUBJECTS)).collect();
        let mut decisions = Vec::new();
        for (limiter, reports) in self.limiters.iter().zip([false, true]) {
            let decided = subjects.iter().map(async |&number| {
                let (policy, subject, cost) = &calls[number];
                let other = subject.clone().and(LABEL);
                let counts_calls = |rule: &Rule| rule.role() == Role::Limit && rule.unit().is_none();
                let is_paid_in_calls = policy.units().next().is_none() || policy.rules().iter().any(counts_calls);
                let calls = if is_paid_in_calls { *cost } else { 1 };
                let mut check = limiter.check(policy, subject).cost(calls).refundable();
                if self.is_grouped {
                    check = check.subject(LABEL, &other);
                }
                if policy.units().next().is_some() {
                    check = check.cost_of(UNIT, cost / 2);
                }
                (number, if reports { check.report().await } else { check.await }.unwrap())
            });
            let mut decided = join_all(decided).await;
            decided.sort_by_key(|(subject, decision)| (*subject, outcome(decision)));
            decisions.push(decided);
        }
        let [plain, reported] = decisions.try_into().unwrap();
        for ((subject, plain), (_, reported)) in plain.into_iter().zip(reported) {
            let call = &calls[subject];
            assert_eq!(outcome(&plain), outcome(&reported), "{call:?} at {}", self.clocked.now_us());
            match (plain, reported) {
                (Decision::Allowed(one), Decision::Allowed(other)) => {
                    self.admitted += 1;
                    self.permits.push([one, other]);
                }
                (plain, _) => {
                    self.denied += 1;
                    self.wait = outcome(&plain).unwrap().1;
                }
            }
        }
    }

    async fn refund(&mut self) {
        if self.permits.is_empty() {
            return;
        }
        let index = self.random.usize(..self.permits.len());
        let [one, other] = self.permits.swap_remove(index);
        let (one, other) = (one.refund().await.unwrap(), other.refund().await.unwrap());
        assert_eq!(one, other);
        self.refunded += usize::from(one);
    }

    fn assert_same_bytes(&mut self) {
        let tallies = PREFIXES.map(|prefix| self.tallies(prefix));
        assert_eq!(tallies[0], tallies[1], "at {}", self.clocked.now_us());
        assert!(tallies[0].values().all(|tally| tally.len() % ENTRY_BYTES == 0));
    }

    /// Returns the tallies of a prefix, by their keys without it.
    fn tallies(&mut self, prefix: &str) -> BTreeMap<String, Vec<u8>> {
        let keys: Vec<String> = redis::cmd("KEYS").arg(format!("{prefix}:p/*")).query(&mut self.connection).unwrap();
        let mut get = |key: &String| redis::cmd("GET").arg(key).query(&mut self.connection).unwrap();
        keys.iter().map(|key| (key.replace(prefix, ""), get(key))).collect()
    }

    /// Fills the log of a subject with calls at even distances, so many that it is dense, or nearly.
    async fn fill(&mut self) {
        self.call().await;
        let entries = self.random.usize(LOG_ENTRIES - 3..2 * LOG_ENTRIES);
        let step_us = self.random.u64(1..3 * HOUR_US) / entries as u64;
        let first_us = self.clocked.now_us() - step_us * entries as u64;
        let mut log = vec![0; ENTRY_BYTES];
        for entry in 1..=entries as u64 {
            log.extend(&(first_us + step_us * entry).to_be_bytes()[1..]);
            log.extend([0; 4]);
        }
        let keys: Vec<String> = redis::cmd("KEYS").arg("*:p/*").query(&mut self.connection).unwrap();
        let of_subject = |key: &&String| keys[0].split(':').next_back() == key.split(':').next_back();
        for key in keys.iter().filter(of_subject) {
            redis::cmd("SET").arg(key).arg(&log).arg("KEEPTTL").exec(&mut self.connection).unwrap();
        }
    }

    async fn play(&mut self, steps: usize, is_dense: bool) {
        self.begin();
        let sets_back = self.random.bool();
        if is_dense {
            self.fill().await;
        }
        for _ in 0..steps {
            self.pass(sets_back);
            if self.random.u8(0..4) == 0 {
                self.refund().await;
            } else {
                self.call().await;
            }
            self.assert_same_bytes();
        }
    }
}

#[tokio::test]
async fn both_scripts_answer_and_store_the_same() {
    let mut trial = Trial::new(seed()).await;
    for _ in 0..cases(40, 1_000) {
        trial.play(50, false).await;
    }
    let Trial { admitted, denied, refunded, .. } = trial;
    assert!(admitted > 1_000 && denied > 1_000 && refunded > 50, "{admitted}, {denied}, {refunded}");
}

#[tokio::test]
async fn both_scripts_answer_and_store_the_same_of_dense_logs() {
    let mut trial = Trial::new(seed()).await;
    for _ in 0..cases(6, 100) {
        trial.play(20, true).await;
    }
}
