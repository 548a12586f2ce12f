//! The work of the server for calls that cost as much as tokens do, in instructions.

use std::cell::RefCell;
use std::time::Duration;

use fastrand::Rng;
use tallygate::{Limiter, Permit, Policy, Subject};
use tokio::runtime::Runtime;

use super::{runtime, sliding};
use crate::callgrind::CountingServer;
use crate::duel::Duel;
use crate::figure::Figure;
use crate::load::patient;
use crate::tally::{Logged, replace_logs};

const ROUNDS: usize = 5;
const SUBJECTS: usize = 64;

/// How many calls count in each log, and how many have ended.
const COUNTED: u64 = 100;
const ENDED: u64 = 16;

const HOUR: Duration = Duration::from_secs(3_600);
/// The time between two calls in a log.
const STEP_US: u64 = 3_600_000_000 / (COUNTED + 1);

const MOST: u32 = 4_000;
const PEER: &str = "cost 1";

const ADMITTED: &str = "server instructions of a call of cost 1 to 4,000, 100 in its window, admitted";
const DENIED: &str = "— denied";
const SETTLED: &str = "— admitted, and half of the calls settled";

pub(crate) fn figures() -> Vec<Figure> {
    measured().unwrap_or_else(|why| [ADMITTED, DENIED, SETTLED].map(|what| Figure::skipped(what, PEER, &why)).into())
}

fn measured() -> Result<Vec<Figure>, String> {
    // All calls in a log cost 200,050 together. There is room for those of all rounds, but not for those that have ended.
    let [roomy, full] = [Caller::of_tokens(226_000)?, Caller::of_tokens(195_000)?];
    let [roomy_of_ones, full_of_ones] = [Caller::of_ones(COUNTED + 50)?, Caller::of_ones(COUNTED - 5)?];
    let admitted = Duel::of(ROUNDS, || roomy.instructions(0), || roomy_of_ones.instructions(0));
    let denied = Duel::of(ROUNDS, || full.instructions(0), || full_of_ones.instructions(0));
    let [settling, settling_ones] = [Caller::of_tokens(226_000)?, Caller::of_ones(COUNTED + 50)?];
    let settled = Duel::of(ROUNDS, || settling.instructions(SUBJECTS / 2), || settling_ones.instructions(0));
    let figure = |what, duel| Figure::ratio(what, "Ir", PEER, duel);
    Ok(vec![
        figure(ADMITTED, &admitted).at_most(2.0),
        figure(DENIED, &denied).at_most(2.1),
        figure(SETTLED, &settled).at_most(3.2),
    ])
}

/// Calls subjects that have each a log of their own.
struct Caller {
    server: CountingServer,
    runtime: Runtime,
    limiter: Limiter,
    policy: Policy,
    most: u32,
    random: RefCell<Rng>,
}

impl Caller {
    fn of_tokens(count: u64) -> Result<Self, String> {
        Self::new(count, MOST)
    }

    fn of_ones(count: u64) -> Result<Self, String> {
        Self::new(count, 1)
    }

    fn new(count: u64, most: u32) -> Result<Self, String> {
        let (server, runtime) = (CountingServer::start()?, runtime(1));
        let limiter = runtime.block_on(patient(&server.server().url()));
        let policy = sliding("bench.tokens", &[(count, HOUR)]);
        let caller = Self { server, runtime, limiter, policy, most, random: RefCell::new(Rng::with_seed(1)) };
        (0..SUBJECTS).for_each(|subject| drop(caller.call(subject, 1)));
        replace_logs(caller.server.server(), |called| caller.log(called.time_us));
        Ok(caller)
    }

    /// Two calls in turn cost as much as the least and the greatest cost.
    fn log(&self, called_us: u64) -> impl Iterator<Item = Logged> {
        let mut first = 1;
        (1..=ENDED + COUNTED).map(move |call| {
            let is_first = call % 2 == 1;
            if is_first {
                first = self.cost();
            }
            let weight = if is_first { first } else { self.most + 1 - first };
            let since_us = STEP_US * (ENDED + COUNTED - call) + STEP_US / 2;
            Logged { time_us: called_us - since_us, weight }
        })
    }

    fn cost(&self) -> u32 {
        self.random.borrow_mut().u32(1..=self.most)
    }

    /// Calls each subject once, settles so many of these calls for less than their cost, and returns the instructions for
    /// each call.
    fn instructions(&self, settled: usize) -> f64 {
        let all = self.server.count(|| {
            for subject in 0..SUBJECTS {
                let cost = self.cost();
                let permit = self.call(subject, cost);
                if let Some(permit) = permit.filter(|_| subject < settled) {
                    let used = self.random.borrow_mut().u64(..u64::from(cost));
                    assert!(self.runtime.block_on(permit.settle(used)).expect("the server answers"), "it still counts");
                }
            }
        });
        all / SUBJECTS as f64
    }

    fn call(&self, subject: usize, cost: u32) -> Option<Permit> {
        let subject = Subject::of(subject);
        let call = self.limiter.check(&self.policy, &subject).cost(cost.into()).refundable();
        self.runtime.block_on(call.into_future()).expect("the server answers").into_result().ok()
    }
}
