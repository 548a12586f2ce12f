//! The time of a call in this process beside that of other libraries, by the number of subjects.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::Quota;
use tallygate::{Limiter, Policy, Rejection, Rule, Subject, rate_limit};

use super::at_once;
use super::decision::GOVERNOR;
use crate::duel::Duel;
use crate::figure::Figure;
use crate::peer::keyed::{KeyedGovernor, KeyedRatelimit, KeyedThrottlecrab};
use crate::stopwatch::Stopwatch;

const HOUR: Duration = Duration::from_secs(3_600);

/// Enough for the subjects of all policies here.
const MAX_SUBJECTS: usize = 4_000_000;

/// The fewest calls of a round: each subject makes several if there are few.
const CALLS: usize = 10_000;

/// So many subjects, and how they are measured.
struct Crowd {
    subjects: usize,
    rounds: usize,
    /// The goal beside governor.
    at_most: f64,
}

const CROWDS: [Crowd; 4] = [
    Crowd { subjects: 100, rounds: 101, at_most: 1.4 },
    Crowd { subjects: 10_000, rounds: 101, at_most: 1.5 },
    Crowd { subjects: 100_000, rounds: 21, at_most: 1.0 },
    Crowd { subjects: 1_000_000, rounds: 7, at_most: 0.7 },
];

/// The crowd whose calls are denied.
const DENIED: usize = 10_000;

#[rate_limit(name = "bench.subjects.admits", key = "sms:{phone}", rule(count = 1_000_000, per = "1h"))]
async fn admitted(phone: &str) -> Result<(), Rejection> {
    black_box(phone);
    Ok(())
}

#[rate_limit(name = "bench.subjects.denies", key = "sms:{phone}", rule(count = 10, per = "1h"))]
async fn denied(phone: &str) -> Result<(), Rejection> {
    black_box(phone);
    Ok(())
}

pub(crate) fn figures() -> Vec<Figure> {
    in_memory().install().expect("the first one");
    CROWDS.iter().flat_map(Crowd::figures).chain([denials()]).collect()
}

impl Crowd {
    fn figures(&self) -> Vec<Figure> {
        let phones = phones(self.subjects);
        let subjects: Vec<_> = phones.iter().map(|phone| Subject::of("sms").and(phone)).collect();
        // A table of its own, as the function has.
        let (limiter, bucket) = (in_memory(), Policy::builder("bench.subjects.bucket"));
        let bucket = bucket.rule(Rule::token_bucket(1 << 20, HOUR)).build().expect("a valid policy");
        let by_bucket = |subject: &Subject| at_once(limiter.check(&bucket, subject)).expect("memory answers");
        let (throttlecrab, ratelimit) = (KeyedThrottlecrab::new(self.subjects), KeyedRatelimit::new(&phones));
        let beside =
            Beside { crowd: self, governor: KeyedGovernor::new(Quota::per_second(NonZeroU32::MAX)), phones: &phones };
        vec![
            beside
                .figure("an annotated function, sliding window", &phones, |phone| at_once(admitted(phone)).is_ok())
                .at_most(self.at_most),
            beside
                .figure("by hand, token bucket", &subjects, |subject| by_bucket(subject).is_allowed())
                .at_most(self.at_most),
            beside.figure("throttlecrab", &phones, |phone| throttlecrab.admits(phone)),
            beside.figure("ratelimit, a bucket for each in a map", &phones, |phone| ratelimit.admits(phone)),
        ]
    }
}

/// Governor, with what it is compared by.
struct Beside<'a> {
    crowd: &'a Crowd,
    governor: KeyedGovernor,
    phones: &'a [String],
}

impl Beside<'_> {
    fn figure<T>(&self, what: &str, subjects: &[T], admits: impl Fn(&T) -> bool) -> Figure {
        let Self { crowd, governor, phones } = self;
        let duel = Duel::of(
            crowd.rounds,
            || ns_each(subjects, |subject| assert!(admits(subject))),
            || ns_each(phones, |phone| assert!(governor.admits(phone))),
        );
        Figure::ratio(&format!("memory, {} subjects, {what}", crowd.subjects), "ns", GOVERNOR, &duel)
    }
}

fn in_memory() -> Limiter {
    Limiter::builder().max_subjects(MAX_SUBJECTS).build_in_memory().expect("valid settings")
}

fn denials() -> Figure {
    let phones = phones(DENIED);
    for phone in phones.iter().cycle().take(10 * DENIED) {
        at_once(denied(phone)).expect("there is room");
    }
    let governor = KeyedGovernor::new(Quota::per_hour(NonZeroU32::MIN));
    for phone in &phones {
        governor.admits(phone);
    }
    let duel = Duel::of(
        CROWDS[0].rounds,
        || ns_each(&phones, |phone| assert!(at_once(denied(phone)).is_err())),
        || ns_each(&phones, |phone| assert!(!governor.admits(phone))),
    );
    Figure::ratio(&format!("memory, {DENIED} subjects, an annotated function, denied"), "ns", GOVERNOR, &duel)
        .at_most(1.6)
}

/// In an order that no processor can predict.
fn phones(subjects: usize) -> Vec<String> {
    let mut phones: Vec<_> = (0..subjects).map(|number| format!("138{number:08}")).collect();
    fastrand::shuffle(&mut phones);
    phones
}

fn ns_each<T>(subjects: &[T], call: impl Fn(&T)) -> f64 {
    let calls = subjects.len().max(CALLS);
    let started = Stopwatch::start();
    subjects.iter().cycle().take(calls).for_each(|subject| call(black_box(subject)));
    started.ns_each(calls)
}
