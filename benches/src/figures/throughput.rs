//! How many calls one process gets through.

use std::time::Duration;

use tallygate::{Limiter, Rejection, rate_limit};
use tokio::runtime::Runtime;

use super::{SORTED_SET, runtime, sliding};
use crate::duel::Duel;
use crate::figure::Figure;
use crate::load::{Caller, drive, patient};
use crate::peer::{Empty, SortedSet};
use crate::server::Server;

const ROUNDS: usize = 21;
const TASKS: usize = 256;
const SUBJECTS: usize = 1_000;
const CALLS: usize = 25 * SUBJECTS;

/// Calls an annotated function.
#[derive(Clone)]
pub(super) struct Annotated {
    pub(super) limiter: Limiter,
}

#[rate_limit(
    key = "{subject}",
    rule(count = 100, per = "600ms"),
    rule(count = 200, per = "1200ms"),
    limiter = limiter
)]
async fn limited(limiter: &Limiter, subject: usize) -> Result<(), Rejection> {
    Ok(())
}

impl Caller for Annotated {
    async fn call(&self, subject: usize) -> bool {
        limited(&self.limiter, subject).await.is_ok()
    }
}

pub(crate) fn figures(server: &Server) -> Vec<Figure> {
    let runtime = runtime(2);
    let policy = sliding("peer", &[(100, Duration::from_millis(600)), (200, Duration::from_millis(1_200))]);
    let ours = Annotated { limiter: runtime.block_on(patient(&server.url())) };
    let against_sorted_set = compare(&runtime, &ours, runtime.block_on(SortedSet::load(server, &policy)));
    let against_empty = compare(&runtime, &ours, runtime.block_on(Empty::load(server)));
    vec![
        Figure::ratio("calls of an annotated function, 256 tasks", "/s", SORTED_SET, &against_sorted_set).at_least(3.0),
        Figure::ratio("calls of an annotated function, 256 tasks", "/s", "empty script", &against_empty).at_least(1.0),
    ]
}

fn compare<P: Caller>(runtime: &Runtime, ours: &Annotated, peer: P) -> Duel {
    let (ours, peers) = (vec![ours.clone(); TASKS], vec![peer; TASKS]);
    Duel::of(ROUNDS, || runtime.block_on(calls_a_second(&ours)), || runtime.block_on(calls_a_second(&peers)))
}

async fn calls_a_second<C: Caller>(callers: &[C]) -> f64 {
    let outcome = drive(callers, (0..CALLS).map(|call| call % SUBJECTS).collect()).await;
    assert!(outcome.admitted > CALLS / 100 * 99, "only {} of {CALLS} calls were admitted", outcome.admitted);
    CALLS as f64 / outcome.seconds
}
