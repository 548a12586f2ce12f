//! The server time of weights, refunds and settlements.

use std::time::Duration;

use tallygate::{Limiter, Permit, Policy, Subject};
use tokio::runtime::Runtime;

use super::{runtime, sliding};
use crate::duel::Duel;
use crate::figure::Figure;
use crate::load::patient;
use crate::server::Server;

const ROUNDS: usize = 101;
const CALLS: usize = 100;
const HOUR: Duration = Duration::from_secs(3_600);

/// A large count, like that of limits on tokens and bytes: one subject makes many such calls in a window.
const COUNT: u64 = 1 << 31;
const COST: u64 = 100_000;
const SUBJECTS: usize = 100;

/// The most calls that each have their own time.
const LOG: usize = 65_536;

pub(crate) fn figures(server: &Server) -> Vec<Figure> {
    server.clear();
    let bench = Bench::new(server);
    let (cost, refund, settlement) = (bench.cost(), bench.refund(), bench.settlement());
    vec![
        Figure::ratio("server time of a call of cost 100,000", "µs", "cost 1", &cost).at_most(1.2),
        Figure::ratio("server time of the refund of the last call, log of 65,536", "µs", "that call", &refund)
            .at_most(3.0),
        Figure::ratio("— of settling it for more than its cost", "µs", "the refund", &settlement).at_most(1.5),
    ]
}

struct Bench<'a> {
    server: &'a Server,
    runtime: Runtime,
    limiter: Limiter,
}

impl<'a> Bench<'a> {
    fn new(server: &'a Server) -> Self {
        let runtime = runtime(1);
        let limiter = runtime.block_on(patient(&server.url()));
        Self { server, runtime, limiter }
    }

    fn cost(&self) -> Duel {
        let [heavy, light] = ["bench.heavy", "bench.light"].map(|name| sliding(name, &[(COUNT, HOUR)]));
        Duel::of(ROUNDS, || self.us_of_calls(&heavy, COST), || self.us_of_calls(&light, 1))
    }

    /// Returns the microseconds that the server takes for one of these calls.
    fn us_of_calls(&self, policy: &Policy, cost: u64) -> f64 {
        self.server.forget_statistics();
        for _ in 0..CALLS {
            self.call(policy, &Subject::of(fastrand::usize(..SUBJECTS)), cost);
        }
        self.server.script_us() / CALLS as f64
    }

    fn refund(&self) -> Duel {
        let (policy, subject) = self.long_log("bench.refund");
        let us = |of: fn([f64; 2]) -> f64| mean(|| of(self.us_of_call_and_settlement(&policy, &subject, 0)));
        Duel::of(ROUNDS / 10, || us(|[_, refund]| refund), || us(|[call, _]| call))
    }

    fn settlement(&self) -> Duel {
        let (policy, subject) = self.long_log("bench.settle");
        let us = |used| mean(|| self.us_of_call_and_settlement(&policy, &subject, used)[1]);
        Duel::of(ROUNDS / 10, || us(2), || us(0))
    }

    /// Fills the log of a subject, under a policy of that name.
    fn long_log(&self, name: &'static str) -> (Policy, Subject) {
        let (policy, subject) = (sliding(name, &[(2 * LOG as u64, HOUR)]), Subject::of("one"));
        for _ in 0..LOG {
            self.call(&policy, &subject, 1);
        }
        (policy, subject)
    }

    /// Returns the microseconds that the server takes for a call, and then for settling it. Nothing used is a refund.
    fn us_of_call_and_settlement(&self, policy: &Policy, subject: &Subject, used: u64) -> [f64; 2] {
        self.server.forget_statistics();
        let permit = self.call(policy, subject, 1);
        let call = self.server.script_us();
        self.server.forget_statistics();
        assert!(self.runtime.block_on(permit.settle(used)).expect("the server answers"), "it still counts");
        [call, self.server.script_us()]
    }

    fn call(&self, policy: &Policy, subject: &Subject, cost: u64) -> Permit {
        let call = self.limiter.check(policy, subject).cost(cost).refundable();
        let decision = self.runtime.block_on(call.into_future()).expect("the server answers");
        decision.into_result().expect("there is room")
    }
}

fn mean(mut us: impl FnMut() -> f64) -> f64 {
    (0..CALLS).map(|_| us()).sum::<f64>() / CALLS as f64
}
