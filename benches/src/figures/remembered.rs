//! The cost of cached denials, and what they save the server.

use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tallygate::{BackendError, Decision, Limiter, Policy, Subject};
use tokio::runtime::Runtime;
use tokio::time::{MissedTickBehavior, interval};

use super::decision::{CALLS, GOVERNOR, Governor, ROUNDS, subjects};
use super::{runtime, sliding};
use crate::duel::Duel;
use crate::figure::Figure;
use crate::server::Server;
use crate::stopwatch::Stopwatch;

const COUNT: u64 = 10;
const HOUR: Duration = Duration::from_secs(3_600);

/// The duration of the flood: several times that of a cached denial.
const FLOOD_SECONDS: u32 = 4;
const FLOOD_PER_MS: u32 = 100;

pub(crate) fn figures(server: &Server) -> Vec<Figure> {
    server.clear();
    let bench = Bench::new(server);
    let governor = Governor::that_denies();
    let denied = Duel::of(ROUNDS, || bench.denied_ns(), || governor.ns());
    let flood = Duel::once(|| bench.commands_a_second(server), || bench.calls_a_second());
    vec![
        Figure::ratio("a remembered denial", "ns", GOVERNOR, &denied),
        Figure::alone("commands of a flood of one denied subject", "/s", "calls", &flood).at_most(5.0),
    ]
}

/// Subjects that are denied for an hour.
struct Bench {
    runtime: Runtime,
    limiter: Limiter,
    policy: Policy,
    subjects: Vec<Subject>,
}

impl Bench {
    fn new(server: &Server) -> Self {
        let (runtime, policy) = (runtime(1), sliding("bench.remembered", &[(COUNT, HOUR)]));
        let builder = Limiter::builder().deadline(Duration::from_secs(30));
        let limiter = runtime.block_on(builder.connect(server.url())).expect("the server answers");
        let subjects = subjects(|phone| Subject::of(phone));
        for subject in &subjects {
            let all = runtime.block_on(limiter.check(&policy, subject).cost(COUNT).into_future());
            assert!(all.expect("the server answers").is_allowed());
        }
        Self { runtime, limiter, policy, subjects }
    }

    fn denied_ns(&self) -> f64 {
        let _entered = self.runtime.enter();
        let started = Stopwatch::start();
        for subject in self.subjects.iter().cycle().take(CALLS) {
            let decision = self.decide(black_box(subject));
            black_box(&decision);
        }
        started.ns_each(CALLS)
    }

    /// Decides from the cache. One call per second and subject is not cached, and asks the server.
    fn decide(&self, subject: &Subject) -> Result<Decision, BackendError> {
        let mut deciding = pin!(self.limiter.check(black_box(&self.policy), subject).into_future());
        match deciding.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(decided) => decided,
            Poll::Pending => self.runtime.block_on(deciding),
        }
    }

    /// Returns the number of commands per second that a flood sends to the server.
    fn commands_a_second(&self, server: &Server) -> f64 {
        server.forget_statistics();
        self.calls_a_second();
        server.commands() / f64::from(FLOOD_SECONDS)
    }

    /// Floods one subject with calls, and returns the number of calls per second.
    fn calls_a_second(&self) -> f64 {
        self.runtime.block_on(async {
            let started = Instant::now();
            let mut clock = interval(Duration::from_millis(1));
            clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
            for _ in 0..FLOOD_SECONDS * 1_000 {
                clock.tick().await;
                for _ in 0..FLOOD_PER_MS {
                    let decision = self.limiter.check(&self.policy, &self.subjects[0]).await;
                    assert!(!decision.expect("the server answers").is_allowed());
                }
            }
            f64::from(FLOOD_SECONDS * 1_000 * FLOOD_PER_MS) / started.elapsed().as_secs_f64()
        })
    }
}
