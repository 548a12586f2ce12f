//! The grammar of the attribute, argument by argument, on functions that run.

mod algorithms;
mod bans;
mod concurrency;
mod costs;
mod counts;
mod duplicates;
mod filters;
mod messages;
mod named_policies;
mod outcomes;
mod refund_keys;
mod refunded_shapes;
mod refunds;
mod rule_names;
mod shadows;
mod skips;
mod subjects;
mod waits;

use std::cell::Cell;
use std::fmt::Debug;
use std::time::Duration;

use tallygate::{Rejection, RejectionKind};

/// One microsecond: what an exact wait is exact to.
const TICK: Duration = Duration::from_micros(1);

/// How often a body ran.
#[derive(Default)]
struct Runs(Cell<u32>);

impl Runs {
    fn count(&self) -> u32 {
        self.0.set(self.0.get() + 1);
        self.0.get()
    }
}

/// Returns why a call was rejected, which it was by a rule.
#[track_caller]
fn denial<T: Debug>(result: Result<T, Rejection>) -> Rejection {
    let rejection = result.unwrap_err();
    assert_ne!(rejection.kind(), RejectionKind::Unavailable, "{rejection}");
    rejection
}
