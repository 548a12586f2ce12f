//! The cost of concurrency limits for the server and for this process.

use std::hint::black_box;
use std::time::Duration;

use tallygate::{Limiter, Permit, Policy, Rule, Subject};
use tokio::runtime::Runtime;

use super::decision::{CALLS, ROUNDS, subjects};
use super::{at_once, runtime, sliding};
use crate::callgrind::CountingServer;
use crate::duel::Duel;
use crate::figure::Figure;
use crate::load::patient;
use crate::server::{Server, wait_until};
use crate::stopwatch::Stopwatch;
use crate::tally::add_leases;

const HOUR: Duration = Duration::from_secs(3_600);
const SUBJECTS: usize = 10;
const LARGE: u64 = 10_000;
const SMALL: u64 = 10;

/// The peers.
const WINDOW: &str = "one sliding window";
const OF_SMALL: &str = "9 of 10";

pub(crate) fn figures(server: &Server) -> Vec<Figure> {
    let time = Bench::new(Meter::Time(server)).figures();
    let counted = match CountingServer::start() {
        Ok(server) => Bench::new(Meter::Instructions(&server)).figures(),
        Err(why) => vec![Figure::skipped("server instructions of concurrent calls", WINDOW, &why)],
    };
    time.into_iter().chain(counted).chain([in_memory()]).collect()
}

/// What is measured of the calls of scripts.
enum Meter<'a> {
    Time(&'a Server),
    Instructions(&'a CountingServer),
}

impl Meter<'_> {
    fn server(&self) -> &Server {
        match self {
            Self::Time(server) => server,
            Self::Instructions(server) => server.server(),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Time(_) => "server time",
            Self::Instructions(_) => "server instructions",
        }
    }

    fn unit(&self) -> &'static str {
        match self {
            Self::Time(_) => "µs",
            Self::Instructions(_) => "Ir",
        }
    }

    fn rounds(&self) -> usize {
        match self {
            Self::Time(_) => 101,
            Self::Instructions(_) => 5,
        }
    }

    fn measure(&self, work: impl FnOnce()) -> f64 {
        match self {
            Self::Time(server) => {
                server.forget_statistics();
                work();
                server.script_us()
            }
            Self::Instructions(server) => server.count(work),
        }
    }
}

struct Bench<'a> {
    meter: Meter<'a>,
    runtime: Runtime,
    limiter: Limiter,
}

impl<'a> Bench<'a> {
    fn new(meter: Meter<'a>) -> Self {
        let runtime = runtime(1);
        meter.server().clear();
        let limiter = runtime.block_on(patient(&meter.server().url()));
        Self { meter, runtime, limiter }
    }

    fn figures(&self) -> Vec<Figure> {
        let (name, unit) = (self.meter.name(), self.meter.unit());
        let [both_trips, admitted, denied] = [self.both_trips(), self.admitted(), self.denied()];
        vec![
            Figure::ratio(&format!("{name} of a call under `concurrency(10)`, both trips"), unit, WINDOW, &both_trips),
            Figure::ratio("— of the decision with 9,999 of 10,000 concurrent", unit, OF_SMALL, &admitted).at_most(2.0),
            Figure::ratio("— of a denial by the same limits", unit, "10 of 10", &denied).at_most(2.0),
        ]
    }

    /// A call and its end, which takes another trip.
    fn both_trips(&self) -> Duel {
        let limit = running("bench.trips", SMALL);
        let window = sliding("bench.window", &[(1_000, Duration::from_secs(1))]);
        let call_and_end = |subject| {
            drop(self.call(&limit, subject));
            self.await_leases(&limit, subject, 0);
        };
        self.compare(|| self.each(call_and_end), || self.each(|subject| drop(self.call(&window, subject))))
    }

    fn admitted(&self) -> Duel {
        let large = self.filled("bench.large", LARGE, LARGE - 1);
        let small = self.filled("bench.small", SMALL, SMALL - 1);
        let cost = |policy: &Policy| {
            let mut permits = Vec::new();
            let cost = self.each(|subject| permits.push(self.call(policy, subject)));
            drop(permits);
            (0..SUBJECTS).for_each(|subject| self.await_leases(policy, subject, policy.rules()[0].count() - 1));
            cost
        };
        self.compare(|| cost(&large), || cost(&small))
    }

    fn denied(&self) -> Duel {
        let (large, small) = (self.filled("bench.full", LARGE, LARGE), self.filled("bench.few", SMALL, SMALL));
        let deny = |policy, subject| assert!(self.try_call(policy, subject).is_none(), "there is no room");
        self.compare(|| self.each(|subject| deny(&large, subject)), || self.each(|subject| deny(&small, subject)))
    }

    fn compare(&self, ours: impl FnMut() -> f64, peer: impl FnMut() -> f64) -> Duel {
        Duel::of(self.meter.rounds(), ours, peer)
    }

    /// Returns what the scripts take that are called for one subject.
    fn each(&self, work: impl FnMut(usize)) -> f64 {
        self.meter.measure(|| (0..SUBJECTS).for_each(work)) / SUBJECTS as f64
    }

    /// Returns a limit with this many concurrent calls of each subject.
    fn filled(&self, name: &'static str, limit: u64, held: u64) -> Policy {
        let policy = running(name, limit);
        (0..SUBJECTS).for_each(|subject| add_leases(self.meter.server(), &key(&policy, subject), 0, held));
        policy
    }

    fn call(&self, policy: &Policy, subject: usize) -> Permit {
        self.try_call(policy, subject).expect("there is room")
    }

    fn try_call(&self, policy: &Policy, subject: usize) -> Option<Permit> {
        let subject = Subject::of(subject);
        let call = self.limiter.check(policy, &subject).into_future();
        self.runtime.block_on(call).expect("the server answers").into_result().ok()
    }

    /// Waits until a subject has so many leases: they are given back a moment after the end of a call.
    fn await_leases(&self, policy: &Policy, subject: usize, left: u64) {
        let key = key(policy, subject);
        wait_until(|| self.meter.server().ask::<u64>(&["ZCARD", &key]) == left);
    }
}

fn running(name: &'static str, limit: u64) -> Policy {
    Policy::builder(name).rule(Rule::concurrency(limit, HOUR)).build().expect("a valid policy")
}

fn key(policy: &Policy, subject: usize) -> String {
    format!("tallygate:{}/leases:{subject}", policy.name())
}

fn in_memory() -> Figure {
    // A window that is short, so that a log is as long in this loop as a minute's is in a service.
    let (limit, window) = (running("bench.limit", SMALL), sliding("bench.short", &[(1_000, Duration::from_millis(1))]));
    let (limiter, subjects) = (Limiter::in_memory(), subjects(|phone| Subject::of(phone)));
    let ns = |policy: &Policy| {
        let started = Stopwatch::start();
        for subject in subjects.iter().cycle().take(CALLS) {
            let decision = at_once(limiter.check(black_box(policy), black_box(subject)));
            black_box(&decision);
        }
        started.ns_each(CALLS)
    };
    let duel = Duel::of(ROUNDS, || ns(&limit), || ns(&window));
    Figure::ratio("memory, a call under `concurrency(10)` and its end", "ns", WINDOW, &duel)
}
