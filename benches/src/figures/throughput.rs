//! The throughput of one process.

use std::path::Path;
use std::time::Duration;

use tallygate::{Limiter, Rejection, rate_limit};
use tokio::runtime::Runtime;

use super::{SORTED_SET, runtime, sliding};
use crate::duel::Duel;
use crate::figure::Figure;
use crate::load::{Caller, drive, patient};
use crate::peer::{Cell, Empty, SortedSet};
use crate::server::Server;

const ROUNDS: usize = 31;
const TASKS: usize = 256;
const SUBJECTS: usize = 1_000;
pub(super) const CALLS: usize = 25 * SUBJECTS;

const ONE: &str = "calls of an annotated function, 256 tasks, one rule";
const TWO: &str = "calls of an annotated function, 256 tasks, two rules";
const EMPTY: &str = "an empty script, one by one";
const CELL: &str = "redis-cell, a native module: one token bucket";

/// Calls a function with one rule.
#[derive(Clone)]
struct OneRule(Limiter);

/// Calls a function with two rules.
#[derive(Clone)]
pub(super) struct TwoRules(pub(super) Limiter);

#[rate_limit(key = "{subject}", rule(count = 100, per = "200ms"), limiter = limiter)]
async fn one_rule(limiter: &Limiter, subject: usize) -> Result<(), Rejection> {
    Ok(())
}

#[rate_limit(
    key = "{subject}",
    rule(count = 100, per = "200ms"),
    rule(count = 200, per = "400ms"),
    limiter = limiter
)]
async fn two_rules(limiter: &Limiter, subject: usize) -> Result<(), Rejection> {
    Ok(())
}

impl Caller for OneRule {
    async fn call(&self, subject: usize) -> bool {
        one_rule(&self.0, subject).await.is_ok()
    }
}

impl Caller for TwoRules {
    async fn call(&self, subject: usize) -> bool {
        two_rules(&self.0, subject).await.is_ok()
    }
}

pub(crate) fn figures(server: &Server, redis_cell: Option<&Path>) -> Vec<Figure> {
    let runtime = &runtime(2);
    let limiter = runtime.block_on(patient(&server.url()));
    let (one, two) = (OneRule(limiter.clone()), TwoRules(limiter));
    let empty = runtime.block_on(Empty::load(server));
    let policy = sliding("peer", &[(100, Duration::from_millis(200)), (200, Duration::from_millis(400))]);
    let sorted_set = runtime.block_on(SortedSet::load(server, &policy));
    vec![
        Figure::ratio(ONE, "/s", EMPTY, &compare(runtime, &one, &empty)).at_least(0.95),
        Figure::ratio(TWO, "/s", EMPTY, &compare(runtime, &two, &empty)).at_least(0.9),
        against_cell(runtime, redis_cell),
        Figure::ratio(TWO, "/s", SORTED_SET, &compare(runtime, &two, &sorted_set)).at_least(4.5),
    ]
}

fn against_cell(runtime: &Runtime, redis_cell: Option<&Path>) -> Figure {
    let Some(module) = redis_cell else {
        return Figure::skipped(ONE, CELL, "skipped: name its module with `--redis-cell <path>`");
    };
    let server = Server::with_module(module);
    let ours = OneRule(runtime.block_on(patient(&server.url())));
    // A rate that admits all calls.
    let cell = runtime.block_on(Cell::connect(&server, 1_000_000, 60));
    Figure::ratio(ONE, "/s", CELL, &compare(runtime, &ours, &cell)).at_least(1.4)
}

pub(super) fn compare(runtime: &Runtime, ours: &impl Caller, peer: &impl Caller) -> Duel {
    Duel::of(ROUNDS, || calls_a_second(runtime, ours), || calls_a_second(runtime, peer))
}

pub(super) fn calls_a_second<C: Caller>(runtime: &Runtime, caller: &C) -> f64 {
    let callers = vec![caller.clone(); TASKS];
    let subjects = (0..CALLS).map(|call| call % SUBJECTS).collect();
    let outcome = runtime.block_on(drive(&callers, subjects));
    assert!(outcome.admitted > CALLS / 100 * 99, "only {} of {CALLS} calls were admitted", outcome.admitted);
    CALLS as f64 / outcome.seconds
}
