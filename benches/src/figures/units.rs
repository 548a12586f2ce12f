//! The work of the server for calls that pay in several units or for several subjects, in time and in instructions.
//!
//! A call costs 1 to 4,000 tokens, and half of the calls are settled for less.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use tallygate::{Limiter, Policy, Rule, Subject};

use super::runtime;
use crate::callgrind::CountingServer;
use crate::duel::Duel;
use crate::figure::Figure;
use crate::load::{Caller, drive, patient};
use crate::server::Server;
use crate::tally::{Logged, replace_logs};

/// Callers with one connection each, which make one call at a time: nothing is gathered.
const PROCESSES: usize = 16;

/// How many calls count in each log, and how many have ended.
const COUNTED: u64 = 100;
const ENDED: u64 = 40;

/// There is room for the calls of all rounds, but not for those that have ended.
const CALLS: u64 = COUNTED + 35;
const TOKENS: u64 = 260_000;

const HOUR: Duration = Duration::from_secs(3_600);
/// The time between two calls in a log.
const STEP_US: u64 = 3_600_000_000 / (COUNTED + 1);

const MOST: u32 = 4_000;
const UNIT: &str = "tokens";
const ORGANISATION: &str = "organisation";

/// What is measured, beside what, by which calls each, and how many times the work of the other it may take at most.
const PAIRS: [(&str, &str, Paid, Paid, f64); 3] = [
    ("calls and tokens of one subject", "one rule of such costs", Paid::CallsAndTokens, Paid::Cost, 1.7),
    ("calls, tokens, and tokens of another subject", "one rule of such costs", Paid::OfTwoSubjects, Paid::Cost, 2.3),
    ("two subjects, cost 1", "one subject", Paid::CallsOfTwoSubjects, Paid::Calls, 1.6),
];

/// What a call pays.
#[derive(Clone, Copy, Debug)]
enum Paid {
    Calls,
    CallsOfTwoSubjects,
    /// Its cost, on one rule.
    Cost,
    CallsAndTokens,
    OfTwoSubjects,
}

pub(crate) fn figures(server: &Server) -> Vec<Figure> {
    let timed = PAIRS.map(|(what, against, ours, peer, bound)| {
        server.clear();
        let [ours, peer] = contenders(server, [ours, peer], 4_000);
        let us = |work: &dyn Fn()| {
            server.forget_statistics();
            work();
            server.script_us()
        };
        let duel = Duel::of(75, || ours.measured(500, &us), || peer.measured(500, &us));
        Figure::ratio(&format!("server time, {what}"), "µs", against, &duel).at_most(bound)
    });
    let counted = PAIRS.map(|(what, against, ours, peer, bound)| {
        let what = format!("server instructions, {what}");
        let server = match CountingServer::start() {
            Ok(server) => server,
            Err(why) => return Figure::skipped(&what, against, &why),
        };
        let [ours, peer] = contenders(server.server(), [ours, peer], 128);
        let count = |work: &dyn Fn()| server.count(work);
        let duel = Duel::of(5, || ours.measured(128, &count), || peer.measured(128, &count));
        Figure::ratio(&what, "Ir", against, &duel).at_most(bound)
    });
    timed.into_iter().chain(counted).collect()
}

/// Returns callers whose subjects have logs with calls.
fn contenders(server: &Server, paid: [Paid; 2], subjects: usize) -> [Contender; 2] {
    let contenders = paid.map(|paid| Contender::new(server, paid, subjects));
    replace_logs(server, log);
    contenders
}

/// Callers of one policy.
struct Contender {
    runtime: tokio::runtime::Runtime,
    callers: Vec<Payer>,
    /// They are called in turn: a call on a subject that was called just before shares its entry, which is another way.
    subjects: RefCell<Vec<usize>>,
}

#[derive(Clone)]
struct Payer {
    limiter: Limiter,
    policy: Policy,
    paid: Paid,
}

impl Contender {
    /// Calls each of these subjects once.
    fn new(server: &Server, paid: Paid, subjects: usize) -> Self {
        // One thread for all callers, so that the server has a processor of its own.
        let (runtime, policy) = (runtime(1), paid.policy());
        let payer = || Payer { limiter: runtime.block_on(patient(&server.url())), policy: policy.clone(), paid };
        let callers: Vec<_> = (0..PROCESSES).map(|_| payer()).collect();
        runtime.block_on(drive(&callers, (0..subjects).collect()));
        let mut subjects: Vec<_> = (0..subjects).collect();
        fastrand::shuffle(&mut subjects);
        Self { runtime, callers, subjects: RefCell::new(subjects) }
    }

    /// Returns what the server needs for one of these calls, their settlements included.
    fn measured(&self, calls: usize, measure: &dyn Fn(&dyn Fn()) -> f64) -> f64 {
        self.subjects.borrow_mut().rotate_left(calls);
        let subjects: Arc<[usize]> = self.subjects.borrow().iter().copied().take(calls).collect();
        let all = measure(&|| {
            let admitted = self.runtime.block_on(drive(&self.callers, Arc::clone(&subjects))).admitted;
            assert!(admitted * 50 > 49 * calls, "{admitted} of {calls} calls were admitted");
        });
        all / calls as f64
    }
}

impl Caller for Payer {
    async fn call(&self, subject: usize) -> bool {
        let (one, other) = (Subject::of(subject), Subject::of(1_000_000 + subject));
        let (cost, used) = (fastrand::u32(2..=MOST), fastrand::u32(1..MOST));
        let check = self.limiter.check(&self.policy, &one);
        let check = match self.paid {
            Paid::Calls => check,
            Paid::Cost => check.cost(cost.into()).refundable(),
            Paid::CallsOfTwoSubjects => check.subject(ORGANISATION, &other),
            Paid::CallsAndTokens => check.cost_of(UNIT, cost.into()).refundable(),
            Paid::OfTwoSubjects => check.subject(ORGANISATION, &other).cost_of(UNIT, cost.into()).refundable(),
        };
        let Ok(permit) = check.await.expect("the server answers").into_result() else { return false };
        let used = u64::from(used.min(cost - 1));
        if fastrand::bool() {
            let settled = match self.paid {
                Paid::Calls | Paid::CallsOfTwoSubjects => return true,
                Paid::Cost => permit.settle(used).await,
                Paid::CallsAndTokens | Paid::OfTwoSubjects => permit.settle_units(&[(UNIT, used)]).await,
            };
            assert!(settled.expect("the server answers"), "it still counts");
        }
        true
    }
}

impl Paid {
    fn policy(self) -> Policy {
        let window = |count| Rule::sliding_window(count, HOUR);
        let tokens = || window(TOKENS).counting(UNIT);
        let builder = Policy::builder(format!("bench.{self:?}"));
        let builder = match self {
            Self::Calls => builder.rule(window(CALLS)),
            Self::CallsOfTwoSubjects => builder.rule(window(CALLS)).rule_on(ORGANISATION, window(CALLS)),
            Self::Cost => builder.rule(window(TOKENS)),
            Self::CallsAndTokens => builder.rule(window(CALLS)).rule(tokens()),
            Self::OfTwoSubjects => builder.rule(window(CALLS)).rule(tokens()).rule_on(ORGANISATION, tokens()),
        };
        builder.build().expect("a valid policy")
    }
}

/// The log of a tally whose only call weighs 1 or more. Two calls in turn cost as much as the least and the greatest cost.
fn log(called: Logged) -> impl Iterator<Item = Logged> {
    let most = if called.weight > 1 { MOST } else { 1 };
    let mut first = 1;
    (1..=ENDED + COUNTED).map(move |call| {
        let is_first = call % 2 == 1;
        if is_first {
            first = fastrand::u32(1..=most);
        }
        let weight = if is_first { first } else { most + 1 - first };
        let since_us = STEP_US * (ENDED + COUNTED - call) + STEP_US / 2;
        Logged { time_us: called.time_us - since_us, weight }
    })
}
