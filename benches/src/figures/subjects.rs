//! The time of a call of an annotated function in this process, with many subjects.

use std::hint::black_box;
use std::num::NonZeroU32;

use governor::{DefaultKeyedRateLimiter, Quota};
use tallygate::{Rejection, rate_limit};

use super::at_once;
use super::decision::GOVERNOR;
use crate::duel::Duel;
use crate::figure::Figure;
use crate::stopwatch::Stopwatch;

const ROUNDS: usize = 101;
const SUBJECTS: usize = 10_000;

#[rate_limit(name = "bench.subjects.admits", key = "sms:{phone}", rule(count = 1_000, per = "1ms"))]
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
    let phones = phones();
    for phone in phones.iter().cycle().take(10 * SUBJECTS) {
        at_once(denied(phone)).expect("there is room");
    }
    let admits = duel(&phones, Quota::per_second(NonZeroU32::MAX), |phone| at_once(admitted(phone)).is_ok());
    let denies = duel(&phones, Quota::per_hour(NonZeroU32::MIN), |phone| at_once(denied(phone)).is_err());
    vec![
        Figure::ratio("memory, an annotated function, 10,000 subjects, admitted", "ns", GOVERNOR, &admits).at_most(1.5),
        Figure::ratio("memory, an annotated function, 10,000 subjects, denied", "ns", GOVERNOR, &denies).at_most(1.6),
    ]
}

fn duel(phones: &[String], quota: Quota, is_as_expected: impl Fn(&str) -> bool) -> Duel {
    let governor = DefaultKeyedRateLimiter::keyed(quota);
    Duel::of(
        ROUNDS,
        || ns_each(phones, |phone| assert!(is_as_expected(black_box(phone)))),
        || ns_each(phones, |phone| _ = black_box(governor.check_key(black_box(phone)))),
    )
}

/// In an order that no processor can predict.
fn phones() -> Vec<String> {
    let mut phones: Vec<_> = (0..SUBJECTS).map(|number| format!("138000{number:05}")).collect();
    fastrand::shuffle(&mut phones);
    phones
}

fn ns_each(phones: &[String], call: impl Fn(&String)) -> f64 {
    let started = Stopwatch::start();
    phones.iter().for_each(call);
    started.ns_each(phones.len())
}
