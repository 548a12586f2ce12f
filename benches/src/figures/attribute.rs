//! The cost that the attribute adds to a decision in this process.

use std::future::ready;
use std::hint::black_box;
use std::time::Duration;

use allocation_counter::measure;
use tallygate::{Limiter, Policy, Rejection, Subject, rate_limit};

use super::{at_once, sliding};
use crate::duel::Duel;
use crate::figure::Figure;
use crate::stopwatch::Stopwatch;

const ROUNDS: usize = 301;
const CALLS: usize = 10_000;
const SUBJECTS: usize = 64;

#[rate_limit(name = "bench.attribute", key = "sms:{phone}", rule(count = 1_000, per = "1ms"))]
async fn annotated(phone: &str) -> Result<(), Rejection> {
    black_box(phone);
    Ok(())
}

/// The contents of futures without and with the attribute while they wait.
async fn send(phone: &str) -> Result<(), Rejection> {
    let text = phone.to_owned();
    ready(()).await;
    black_box(text);
    Ok(())
}

#[rate_limit(name = "bench.future", key = "sms:{phone}", rule(count = 1, per = "1h"))]
async fn send_limited(phone: &str) -> Result<(), Rejection> {
    let text = phone.to_owned();
    ready(()).await;
    black_box(text);
    Ok(())
}

#[rate_limit(name = "bench.refund", key = "sms:{phone}", rule(count = 1, per = "1h"), refund_if = Result::is_ok)]
async fn send_refunded(phone: &str) -> Result<(), Rejection> {
    let text = phone.to_owned();
    ready(()).await;
    black_box(text);
    Ok(())
}

/// Compares the size of a future with that of the function without the attribute.
fn size(what: &str, future: &impl Future) -> Figure {
    let duel = Duel::once(|| size_of_val(future) as f64, || size_of_val(&send("")) as f64);
    Figure::alone(what, "bytes", "without the attribute", &duel)
}

pub(crate) fn figures() -> Vec<Figure> {
    let bench = Bench::new();
    let duel = Duel::of(ROUNDS, || bench.annotated_ns(), || bench.direct_ns());
    let allocations = Duel::once(|| bench.annotated_allocations(), || bench.direct_allocations());
    vec![
        Figure::difference("the attribute, beside a direct call", "ns", "direct call", &duel).at_most(40.0),
        Figure::difference("— the same", "allocations", "direct call", &allocations).at_most(0.0),
        size("the future of an annotated function", &send_limited("")).at_most(250.0),
        size("— with `refund_if`", &send_refunded("")).at_most(700.0),
    ]
}

/// Subjects as arguments of the function and ready-made, so that only the attribute renders them.
struct Bench {
    limiter: &'static Limiter,
    policy: Policy,
    phones: Vec<String>,
    subjects: Vec<Subject>,
}

impl Bench {
    fn new() -> Self {
        let phones: Vec<_> = (0..SUBJECTS).map(|number| format!("138000000{number:02}")).collect();
        let subjects = phones.iter().map(|phone| Subject::of("sms").and(phone)).collect();
        let policy = sliding("bench.direct", &[(1_000, Duration::from_millis(1))]);
        Self { limiter: Limiter::installed(), policy, phones, subjects }
    }

    fn annotated_ns(&self) -> f64 {
        let started = Stopwatch::start();
        for phone in self.phones.iter().cycle().take(CALLS) {
            black_box(at_once(annotated(black_box(phone)))).expect("there is room");
        }
        started.ns_each(CALLS)
    }

    fn direct_ns(&self) -> f64 {
        let started = Stopwatch::start();
        for subject in self.subjects.iter().cycle().take(CALLS) {
            let decision = at_once(self.limiter.check(black_box(&self.policy), black_box(subject)));
            assert!(black_box(decision).expect("memory answers").is_allowed());
        }
        started.ns_each(CALLS)
    }

    fn annotated_allocations(&self) -> f64 {
        let counted =
            measure(|| self.phones.iter().for_each(|phone| at_once(annotated(phone)).expect("there is room")));
        counted.count_total as f64
    }

    fn direct_allocations(&self) -> f64 {
        let decide = |subject| drop(at_once(self.limiter.check(&self.policy, subject)));
        measure(|| self.subjects.iter().for_each(decide)).count_total as f64
    }
}
