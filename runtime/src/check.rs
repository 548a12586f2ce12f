//! One call to decide by hand.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::backend::{Answer, Backend, Request, Verdict};
use crate::decision::RuleReport;
use crate::key::Key;
use crate::{Decision, Denial, Limiter, Outage, Permit, Policy, Subject};

/// A call that is being decided: see [`Limiter::check`].
///
/// Nothing is decided until it is awaited.
#[derive(Clone, Debug)]
#[must_use = "a call is decided when it is awaited"]
pub struct Check<'a> {
    limiter: &'a Limiter,
    policy: &'a Policy,
    key: Key,
    cost: u64,
    report: bool,
}

impl<'a> Check<'a> {
    pub(crate) fn new(limiter: &'a Limiter, policy: &'a Policy, subject: &Subject) -> Self {
        let key = Key::new(limiter.prefix(), policy.segment(), subject);
        Self { limiter, policy, key, cost: 1, report: false }
    }

    /// Sets the weight of the call, which is 1 unless it is set. A cost of 0 is admitted whenever one of 1 would be, and
    /// counts nothing.
    pub fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// Asks the decision to report where every rule stands: see [`Decision::report`]. It makes the answer more costly.
    pub fn report(mut self) -> Self {
        self.report = true;
        self
    }

    fn request(&self) -> Request<'_> {
        Request { policy: self.policy, keys: std::slice::from_ref(&self.key), cost: self.cost, report: self.report }
    }

    fn decision(&self, answer: Answer) -> Decision {
        let report = self.policy.rules().iter().cloned().zip(answer.standings).enumerate();
        let report: Vec<_> = report.map(|(index, (rule, standing))| RuleReport::new(index, rule, standing)).collect();
        match answer.verdict {
            Verdict::Admitted => Decision::Allowed(Permit::new(report)),
            Verdict::Denied { rule, retry_after } => {
                Decision::Denied(Denial::new(self.policy.clone(), rule, retry_after, report))
            }
        }
    }
}

impl<'a> IntoFuture for Check<'a> {
    type Output = Result<Decision, Outage>;
    type IntoFuture = Deciding<'a>;

    fn into_future(self) -> Deciding<'a> {
        Deciding(State::Asked(self))
    }
}

/// The future of a [`Check`].
#[must_use = "futures do nothing unless awaited"]
pub struct Deciding<'a>(State<'a>);

#[allow(clippy::large_enum_variant, reason = "lives on the stack for one decision; boxing it would cost more")]
enum State<'a> {
    Asked(Check<'a>),
    #[cfg(feature = "redis")]
    Waiting(Pin<Box<dyn Future<Output = Result<Decision, Outage>> + Send + 'a>>),
    Done,
}

impl Future for Deciding<'_> {
    type Output = Result<Decision, Outage>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        #[cfg(not(feature = "redis"))]
        let _ = context;
        match std::mem::replace(&mut self.0, State::Done) {
            State::Asked(check) => match check.limiter.backend() {
                Backend::Memory(memory) => {
                    Poll::Ready(memory.decide(check.request()).map(|answer| check.decision(answer)))
                }
                // Boxed, so that the future of an annotated function does not carry the state of a network call.
                #[cfg(feature = "redis")]
                Backend::Redis(redis) => {
                    self.0 = State::Waiting(Box::pin(async move {
                        let answer = redis.decide(check.request()).await?;
                        Ok(check.decision(answer))
                    }));
                    self.poll(context)
                }
            },
            #[cfg(feature = "redis")]
            State::Waiting(mut answer) => {
                let polled = answer.as_mut().poll(context);
                if polled.is_pending() {
                    self.0 = State::Waiting(answer);
                }
                polled
            }
            // Polled again after it was ready, which is the caller's mistake: it never is again.
            State::Done => Poll::Pending,
        }
    }
}

impl fmt::Debug for Deciding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deciding").finish_non_exhaustive()
    }
}
