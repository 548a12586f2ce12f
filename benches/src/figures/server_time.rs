//! The server time of a decision.

use std::sync::Arc;
use std::time::Duration;

use tallygate::{Policy, Rule};
use tokio::runtime::Runtime;

use super::{SORTED_SET, runtime, sliding};
use crate::duel::Duel;
use crate::figure::Figure;
use crate::load::{Caller, Checker, Together, drive};
use crate::peer::{Gcra, SortedSet};
use crate::server::Server;
use crate::tally::{Logged, replace_logs};

/// Rounds are short, so that the system takes the processor from the server in few of them.
const ROUNDS: usize = 301;
const CALLS: usize = 500;
/// So large that even fast callers do not use it up.
const SUBJECTS: usize = 4_000;

/// Callers with one connection each, which make one call at a time: nothing is gathered.
const PROCESSES: usize = 16;

/// Callers that share a connection, so their simultaneous calls are gathered into one script call.
const TASKS: usize = 256;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const HOUR_US: u64 = 3_600_000_000;

pub(crate) fn figures(server: &Server) -> Vec<Figure> {
    // One thread for all callers, so that the server has a processor of its own.
    let bench = Bench { server, runtime: runtime(1) };
    vec![
        bench.admitted().at_most(0.45),
        bench.admitted_together().at_most(0.45),
        bench.denied().at_most(0.9),
        bench.denied_together().at_most(0.9),
        bench.large_count_admitted().at_most(1.3),
        bench.large_count_denied().at_most(1.3),
        bench.one_rule(),
        bench.three_subjects().at_most(1.8),
        bench.pausable().at_most(1.15),
    ]
}

struct Bench<'a> {
    server: &'a Server,
    runtime: Runtime,
}

fn two_short_rules() -> Policy {
    sliding("bench.admitted", &[(100, Duration::from_millis(600)), (200, Duration::from_millis(1_200))])
}

fn two_long_rules() -> Policy {
    sliding("bench.denied", &[(10, MINUTE), (20, 2 * MINUTE)])
}

impl Bench<'_> {
    fn admitted(&self) -> Figure {
        let policy = two_short_rules();
        let (ours, peers) = (self.checkers(&policy), self.sorted_sets(&policy));
        self.stagger(&ours);
        let duel = self.compare(&ours, &peers, Expect::Admitted);
        Figure::ratio("server time of an admitted call, two rules", "µs", SORTED_SET, &duel)
    }

    fn admitted_together(&self) -> Figure {
        let policy = two_short_rules();
        let ours = vec![self.checker(&policy); TASKS];
        let peers = vec![self.sorted_set(&policy); TASKS];
        self.stagger(&ours);
        let duel = self.compare(&ours, &peers, Expect::Admitted);
        Figure::ratio("— the same, ours gathered from 256 tasks", "µs", SORTED_SET, &duel)
    }

    fn denied(&self) -> Figure {
        let policy = two_long_rules();
        let (ours, peers) = (self.checkers(&policy), self.sorted_sets(&policy));
        self.exhaust(&ours, &peers);
        let duel = self.compare(&ours, &peers, Expect::Denied);
        Figure::ratio("server time, mostly denied, two rules", "µs", SORTED_SET, &duel)
    }

    fn denied_together(&self) -> Figure {
        let policy = two_long_rules();
        let ours = vec![self.checker(&policy); TASKS];
        let peers = vec![self.sorted_set(&policy); TASKS];
        self.exhaust(&ours, &peers);
        let duel = self.compare(&ours, &peers, Expect::Denied);
        Figure::ratio("— the same, ours gathered from 256 tasks", "µs", SORTED_SET, &duel)
    }

    /// Both half full, so that there is something to read.
    fn large_count_admitted(&self) -> Figure {
        let duel = self.compare_counts(50_000, 5, Expect::Admitted);
        Figure::ratio("server time at 100,000 per hour, admitted", "µs", "10 per minute", &duel)
    }

    fn large_count_denied(&self) -> Figure {
        let duel = self.compare_counts(100_000, 10, Expect::Denied);
        Figure::ratio("server time at 100,000 per hour, denied", "µs", "10 per minute", &duel)
    }

    fn one_rule(&self) -> Figure {
        let policy = sliding("bench.one", &[(100, Duration::from_millis(600))]);
        let ours = self.checkers(&policy);
        let peers: Vec<_> = (0..PROCESSES).map(|_| self.runtime.block_on(Gcra::load(self.server, &policy))).collect();
        self.stagger(&ours);
        let duel = self.compare(&ours, &peers, Expect::Admitted);
        Figure::ratio("server time of an admitted call, one rule", "µs", "GCRA script", &duel)
    }

    /// Each subject has one rule of the same count.
    fn three_subjects(&self) -> Figure {
        const SHORT: Duration = Duration::from_millis(600);
        const COUNT: u64 = 100_000;
        let rule = || Rule::sliding_window(COUNT, SHORT);
        let three = Policy::builder("bench.three").rule(rule()).rule_on("group", rule()).rule_on("everybody", rule());
        let three = three.build().expect("a valid policy");
        let connect = |_| self.runtime.block_on(Together::connect(&self.server.url(), &three));
        let (ours, peers) =
            ((0..PROCESSES).map(connect).collect::<Vec<_>>(), self.checkers(&sliding("bench.one", &[(COUNT, SHORT)])));
        self.server.clear();
        let duel = self.compare(&ours, &peers, Expect::Admitted);
        Figure::ratio("server time, three subjects in one decision", "µs", "one subject", &duel)
    }

    /// No subject is paused, but each may be.
    fn pausable(&self) -> Figure {
        let rules =
            [(100, 600), (200, 1_200)].map(|(count, ms)| Rule::sliding_window(count, Duration::from_millis(ms)));
        let pausable = Policy::builder("bench.pausable").rules(rules).pausable().build().expect("a valid policy");
        let (ours, plain) = (self.checkers(&pausable), self.checkers(&two_short_rules()));
        self.server.clear();
        let duel = self.compare(&ours, &plain, Expect::Admitted);
        Figure::ratio("server time, a subject that can be paused", "µs", "one that cannot", &duel)
    }

    fn compare<P: Caller>(&self, ours: &[impl Caller], peers: &[P], expect: Expect) -> Duel {
        let any = || (0..CALLS).map(|_| fastrand::usize(..SUBJECTS)).collect();
        Duel::of(ROUNDS, || self.us(ours, any(), expect), || self.us(peers, any(), expect))
    }

    /// Compares subjects of a large and of a small count, of which this much is used.
    fn compare_counts(&self, large_used: u64, small_used: u64, expect: Expect) -> Duel {
        const FEW: usize = 50;
        let large = self.checkers(&sliding("bench.large", &[(100_000, HOUR)]));
        let small = self.checkers(&sliding("bench.small", &[(10, MINUTE)]));
        self.server.clear();
        self.runtime.block_on(drive(&large, (0..FEW).collect()));
        let now_us = self.server.now_us();
        // In the last half hour, the oldest first.
        let time_us = |call| now_us - HOUR_US / 2 / large_used * (large_used - call);
        let log = |_| (0..large_used).map(|call| Logged { time_us: time_us(call), weight: 1 });
        replace_logs(self.server, log);
        let mut fresh = 0;
        Duel::of(
            ROUNDS,
            || self.us(&large, (0..CALLS).map(|_| fastrand::usize(..FEW)).collect(), expect),
            || {
                // Half of the count has room for five calls: four are measured, then other subjects take their place.
                let subjects = fresh..fresh + CALLS / 4;
                fresh = subjects.end;
                for _ in 0..small_used {
                    self.runtime.block_on(drive(&small, subjects.clone().collect()));
                }
                self.us(&small, (0..4).flat_map(|_| subjects.clone()).collect(), expect)
            },
        )
    }

    /// Returns the microseconds that the server spends on one of these calls.
    fn us<C: Caller>(&self, callers: &[C], subjects: Arc<[usize]>, expect: Expect) -> f64 {
        let calls = subjects.len() as f64;
        self.server.forget_statistics();
        let admitted = self.runtime.block_on(drive(callers, subjects)).admitted as f64;
        match expect {
            Expect::Admitted => assert!(admitted > 0.98 * calls, "{admitted} of {calls} calls were admitted"),
            Expect::Denied => assert!(admitted < 0.5 * calls, "{admitted} of {calls} calls were admitted"),
        }
        self.server.script_us() / calls
    }

    /// Brings the logs of all subjects to different lengths, so that they are not all rewritten in the same round.
    fn stagger(&self, callers: &[Checker]) {
        /// A log is rewritten when it holds twice the largest count.
        const LONGEST: usize = 2 * 200;
        self.server.clear();
        for pass in 0..LONGEST {
            // Short logs start late: a subject that has started never pauses, or its log would end.
            let begun = SUBJECTS * (pass + 1) / LONGEST;
            self.runtime.block_on(drive(callers, (0..begun).collect()));
        }
    }

    /// Uses up the counts of all subjects.
    fn exhaust<P: Caller>(&self, ours: &[Checker], peers: &[P]) {
        self.server.clear();
        for _ in 0..10 {
            self.runtime.block_on(drive(ours, (0..SUBJECTS).collect()));
            self.runtime.block_on(drive(peers, (0..SUBJECTS).collect()));
        }
    }

    fn checkers(&self, policy: &Policy) -> Vec<Checker> {
        (0..PROCESSES).map(|_| self.checker(policy)).collect()
    }

    fn checker(&self, policy: &Policy) -> Checker {
        self.runtime.block_on(Checker::connect(&self.server.url(), policy))
    }

    fn sorted_sets(&self, policy: &Policy) -> Vec<SortedSet> {
        (0..PROCESSES).map(|_| self.sorted_set(policy)).collect()
    }

    fn sorted_set(&self, policy: &Policy) -> SortedSet {
        self.runtime.block_on(SortedSet::load(self.server, policy))
    }
}

/// The number of calls of a round, except a few.
#[derive(Clone, Copy)]
enum Expect {
    Admitted,
    Denied,
}
