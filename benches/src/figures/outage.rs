//! What a decision costs in this process while Redis is away, beside one where there is no Redis.

use std::hint::black_box;
use std::net::TcpListener;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tallygate::{BackendError, DecidedBy, Decision, Limiter, OnOutage, Policy, Subject};
use tokio::runtime::Runtime;

use super::decision::{CALLS, ROUNDS, subjects};
use super::{runtime, sliding};
use crate::duel::Duel;
use crate::figure::Figure;
use crate::stopwatch::Stopwatch;

const MEMORY: &str = "in memory";
const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) fn figures() -> Vec<Figure> {
    let hole = BlackHole::open();
    let admits = sliding("bench.outage.admits", &[(1_000, Duration::from_millis(1))]);
    let denies = sliding("bench.outage.denies", &[(10, HOUR)]);
    vec![
        hole.figure("decided in an outage, one rule, admitted", &admits).at_most(2.0),
        hole.figure("decided in an outage, one rule, denied", &denies).at_most(2.0),
    ]
}

/// An address that accepts connections and never answers.
struct BlackHole(TcpListener);

/// A limiter, and the calls that it decides.
struct Caller {
    runtime: Runtime,
    limiter: Limiter,
    policy: Policy,
    subjects: Vec<Subject>,
}

impl BlackHole {
    fn open() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").expect("a free port"))
    }

    fn limiter(&self) -> Limiter {
        let url = format!("redis://{}/", self.0.local_addr().expect("it is bound"));
        let builder = Limiter::builder().deadline(Duration::from_millis(100)).on_outage(OnOutage::Local).processes(4);
        builder.connect_lazy(&url).expect("the settings are sound")
    }

    fn figure(&self, what: &str, policy: &Policy) -> Figure {
        let standby = Caller::new(self.limiter(), policy, DecidedBy::Standby);
        let memory = Caller::new(Limiter::in_memory(), policy, DecidedBy::Backend);
        Figure::ratio(what, "ns", MEMORY, &Duel::of(ROUNDS, || standby.ns(), || memory.ns()))
    }
}

impl Caller {
    fn new(limiter: Limiter, policy: &Policy, decided_by: DecidedBy) -> Self {
        let caller = Self {
            runtime: runtime(1),
            limiter,
            policy: policy.clone(),
            subjects: subjects(|phone| Subject::of(phone)),
        };
        let decision = caller.runtime.block_on(async { caller.limiter.check(policy, &caller.subjects[0]).await });
        let decision = decision.expect("the call is decided");
        assert_eq!(decision.decided_by(), decided_by);
        caller
    }

    fn ns(&self) -> f64 {
        let _entered = self.runtime.enter();
        let started = Stopwatch::start();
        for subject in self.subjects.iter().cycle().take(CALLS) {
            let decision = self.decide(black_box(subject));
            black_box(&decision);
        }
        started.ns_each(CALLS)
    }

    /// Decides at once. Now and then a call finds out whether the outage goes on.
    fn decide(&self, subject: &Subject) -> Result<Decision, BackendError> {
        let mut deciding = pin!(self.limiter.check(black_box(&self.policy), subject).into_future());
        match deciding.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(decided) => decided,
            Poll::Pending => self.runtime.block_on(deciding),
        }
    }
}
