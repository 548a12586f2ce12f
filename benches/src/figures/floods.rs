//! How many new subjects a flood in memory denies early, because what it has replaced counts against them, too.

use std::time::Duration;

use tallygate::{Limiter, Policy, Subject};

use super::{at_once, sliding};
use crate::duel::Duel;
use crate::figure::Figure;

const MAX_SUBJECTS: usize = 10_000;
const HOUR: Duration = Duration::from_secs(3_600);

/// How many subjects come within one window, for each one that may have a tally.
const TIMES: [usize; 3] = [1, 10, 100];

pub(crate) fn figures() -> Vec<Figure> {
    [1, 5, 100].into_iter().flat_map(|count| TIMES.map(|times| figure(count, times))).collect()
}

fn figure(count: u64, times: usize) -> Figure {
    let early = Duel::once(|| early_percent(count, times), || 0.0);
    let [early, _] = early.each();
    let what = format!("new subjects denied early, {times} times `max_subjects`");
    let figure = Figure::amount(&what, "%", &format!("count {count}, one call each"), early);
    if times <= 10 { figure.at_most(1.0) } else { figure }
}

/// Calls each new subject once, and then some of them until they are denied: none is admitted more often than its count.
fn early_percent(count: u64, times: usize) -> f64 {
    let limiter = Limiter::builder().max_subjects(MAX_SUBJECTS).build_in_memory().expect("a valid limiter");
    let policy = sliding("bench.floods", &[(count, HOUR)]);
    let subjects = times * MAX_SUBJECTS;
    let admitted: Vec<_> = (0..subjects).map(|number| admits(&limiter, &policy, number)).collect();
    let early = admitted.iter().filter(|is_admitted| !**is_admitted).count();
    for number in (0..subjects).step_by(subjects / 100) {
        let more = (0..=count).filter(|_| admits(&limiter, &policy, number)).count() as u64;
        assert!(more + u64::from(admitted[number]) <= count, "subject {number} is above its count");
    }
    100.0 * early as f64 / subjects as f64
}

fn admits(limiter: &Limiter, policy: &Policy, number: usize) -> bool {
    at_once(limiter.check(policy, &Subject::of(number))).expect("memory always decides").is_allowed()
}
