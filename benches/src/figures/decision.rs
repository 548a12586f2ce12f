//! What a decision costs in this process.

use std::collections::HashMap;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota};
use limitador::limit::{Context, Limit};
use tallygate::{Limiter, Policy, Subject};

use super::{at_once, sliding};
use crate::duel::Duel;
use crate::figure::Figure;
use crate::stopwatch::Stopwatch;

pub(super) const ROUNDS: usize = 301;
pub(super) const CALLS: usize = 10_000;
const SUBJECTS: usize = 64;

pub(super) const GOVERNOR: &str = "governor, keyed, one quota";

pub(crate) fn figures() -> Vec<Figure> {
    let (admits, denies) = (Governor::that_admits(), Governor::that_denies());
    let limitador = Limitador::that_admits();
    vec![
        against_governor("memory, one rule, admitted", one_rule_that_admits(), &admits).at_most(1.0),
        against_governor("memory, one rule, denied", one_rule_that_denies(), &denies).at_most(1.15),
        against_governor("memory, two rules, admitted", two_rules_that_admit(), &admits),
        against_governor("memory, two rules, denied", two_rules_that_deny(), &denies),
        against_limitador("memory, one rule, admitted", one_rule_that_admits(), &limitador),
    ]
}

/// A window that is short, so that a log is as long in this loop as a minute's is in a service.
const SHORT: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3_600);

fn one_rule_that_admits() -> Policy {
    sliding("bench.admits", &[(1_000, SHORT)])
}

fn two_rules_that_admit() -> Policy {
    sliding("bench.admits", &[(1_000, SHORT), (1_500, 2 * SHORT)])
}

fn one_rule_that_denies() -> Policy {
    sliding("bench.denies", &[(10, HOUR)])
}

fn two_rules_that_deny() -> Policy {
    sliding("bench.denies", &[(10, HOUR), (20, 2 * HOUR)])
}

fn against_governor(what: &'static str, policy: Policy, peer: &Governor) -> Figure {
    let ours = Ours::new(policy);
    Figure::ratio(what, "ns", GOVERNOR, &Duel::of(ROUNDS, || ours.ns(), || peer.ns()))
}

fn against_limitador(what: &'static str, policy: Policy, peer: &Limitador) -> Figure {
    let ours = Ours::new(policy);
    Figure::ratio(what, "ns", "limitador", &Duel::of(ROUNDS, || ours.ns(), || peer.ns()))
}

/// The subjects of all contenders.
pub(super) fn subjects<T>(of: impl Fn(&str) -> T) -> Vec<T> {
    (0..SUBJECTS).map(|number| of(&format!("138000000{number:02}"))).collect()
}

struct Ours {
    limiter: Limiter,
    policy: Policy,
    subjects: Vec<Subject>,
}

impl Ours {
    fn new(policy: Policy) -> Self {
        Self { limiter: Limiter::in_memory(), policy, subjects: subjects(|phone| Subject::of(phone)) }
    }

    fn ns(&self) -> f64 {
        let started = Stopwatch::start();
        for subject in self.subjects.iter().cycle().take(CALLS) {
            let decision = at_once(self.limiter.check(black_box(&self.policy), black_box(subject)));
            black_box(&decision);
        }
        started.ns_each(CALLS)
    }
}

/// As its documentation sets it up: on a concurrent map, with the clock that reads the processor's counter.
pub(super) struct Governor {
    limiter: DefaultKeyedRateLimiter<String>,
    subjects: Vec<String>,
}

impl Governor {
    fn that_admits() -> Self {
        Self::new(Quota::per_second(NonZeroU32::MAX))
    }

    pub(super) fn that_denies() -> Self {
        Self::new(Quota::per_hour(NonZeroU32::MIN))
    }

    fn new(quota: Quota) -> Self {
        Self { limiter: DefaultKeyedRateLimiter::keyed(quota), subjects: subjects(str::to_owned) }
    }

    pub(super) fn ns(&self) -> f64 {
        let started = Stopwatch::start();
        for subject in self.subjects.iter().cycle().take(CALLS) {
            let decision = self.limiter.check_key(black_box(subject));
            black_box(&decision);
        }
        started.ns_each(CALLS)
    }
}

struct Limitador {
    limiter: limitador::RateLimiter,
    contexts: Vec<Context<'static>>,
}

impl Limitador {
    fn that_admits() -> Self {
        let limiter = limitador::RateLimiter::new(10 * SUBJECTS as u64);
        let variables = vec!["phone".try_into().expect("a valid expression")];
        limiter.add_limit(Limit::new("bench", u64::from(u32::MAX), 60, vec![], variables));
        let context = |phone: &str| HashMap::from([("phone".to_owned(), phone.to_owned())]).into();
        Self { limiter, contexts: subjects(context) }
    }

    fn ns(&self) -> f64 {
        let namespace = "bench".into();
        let started = Stopwatch::start();
        for context in self.contexts.iter().cycle().take(CALLS) {
            let decision = self.limiter.check_rate_limited_and_update(&namespace, black_box(context), 1);
            assert!(!black_box(decision).expect("it decides").limited);
        }
        started.ns_each(CALLS)
    }
}
