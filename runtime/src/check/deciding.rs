//! The deciding of a call: at once where this process can, else by asking.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Check;
use super::terms::Terms;
#[cfg(feature = "redis")]
use crate::backend::Redis;
use crate::backend::{Answer, Backend, Memory, Request, Standing, Verdict};
use crate::decision::RuleReport;
use crate::observe::{Purpose, Watch};
use crate::permit::Ticket;
use crate::{Decision, Denial, Outage, Permit, Policy, wait};

impl Check<'_> {
    /// Asks once, whatever the patience.
    pub(crate) async fn ask(&self) -> Result<Decision, Outage> {
        match self.at_once() {
            Poll::Ready(decided) => decided,
            Poll::Pending => self.later().await,
        }
    }

    /// Decides a call that this process can decide without asking.
    #[cfg_attr(not(feature = "redis"), allow(clippy::unnecessary_wraps, reason = "without Redis it can decide any"))]
    #[inline]
    fn at_once(&self) -> Poll<Result<Decision, Outage>> {
        let Some(request) = self.plain() else { return self.at_once_by_terms() };
        match self.limiter.backend() {
            // Each outcome is written where it is returned: an answer that is passed on is copied again and again.
            Backend::Memory(memory) => match memory.verdict(request) {
                Ok(Verdict::Admitted) => Poll::Ready(Ok(Decision::Allowed(Permit::plain()))),
                Ok(denied) => Poll::Ready(Ok(denied_plainly(request, denied))),
                Err(outage) => Poll::Ready(Err(outage)),
            },
            #[cfg(feature = "redis")]
            Backend::Redis(_) => match self.remembered(request) {
                Some(denied) => Poll::Ready(Ok(denied_plainly(request, denied))),
                None => Poll::Pending,
            },
        }
    }

    /// The same, whatever subjects the call has and whatever rules are in force.
    #[cfg_attr(not(feature = "redis"), allow(clippy::unnecessary_wraps, reason = "without Redis it can decide any"))]
    #[inline(never)]
    fn at_once_by_terms(&self) -> Poll<Result<Decision, Outage>> {
        let terms = match self.terms() {
            Ok(terms) => terms,
            Err(mistake) => return Poll::Ready(Err(mistake)),
        };
        let closed = self.closed(&terms);
        let denied = match self.limiter.backend() {
            Backend::Memory(memory) => match closed {
                Some(closed) => closed,
                None => return Poll::Ready(self.by_memory_on(memory, &terms)),
            },
            // Whether the door is still closed is looked after as anything else is.
            #[cfg(feature = "redis")]
            Backend::Redis(_) if closed.is_some() && self.limiter.overrides().is_due() => return Poll::Pending,
            #[cfg(feature = "redis")]
            Backend::Redis(_) => match closed.or_else(|| self.remembered(self.request(&terms))) {
                Some(denied) => denied,
                None => return Poll::Pending,
            },
        };
        Poll::Ready(Ok(self.denial(self.request(&terms), denied)))
    }

    /// What this process remembers of such a call. Who gives permits back wants to know what others gave back.
    #[cfg(feature = "redis")]
    fn remembered(&self, request: Request<'_>) -> Option<Verdict> {
        let denials = self.limiter.denials().filter(|_| !self.refundable)?;
        denials.recall(request, self.limiter.clock().now_us())
    }

    async fn at_length(self) -> Result<Decision, Outage> {
        match self.patience {
            Some(patience) => wait::admission(&self, patience).await,
            None => self.later().await,
        }
    }

    /// Decides a call that this process cannot decide by itself.
    #[cfg_attr(not(feature = "redis"), allow(clippy::unused_async, reason = "without Redis there is none to wait for"))]
    async fn later(&self) -> Result<Decision, Outage> {
        match self.limiter.backend() {
            Backend::Memory(memory) => {
                let terms = self.terms()?;
                self.by_memory_on(memory, &terms)
            }
            #[cfg(feature = "redis")]
            Backend::Redis(redis) => self.by_redis(redis).await,
        }
    }

    #[cfg(feature = "redis")]
    async fn by_redis(&self, redis: &Redis) -> Result<Decision, Outage> {
        let Some(mut looking) = self.limiter.overrides().look(self.limiter) else {
            return self.by_redis_on(&self.terms()?, redis).await;
        };
        // One deadline for both: the look at the overrides and the decision.
        let decided = tokio::time::timeout(redis.deadline(), async {
            // It is over when the other end is gone.
            while looking.changed().await.is_ok() {}
            self.by_redis_on(&self.terms()?, redis).await
        });
        decided.await.unwrap_or_else(|_| Err(Outage::new("redis: no answer within the deadline")))
    }

    #[cfg(feature = "redis")]
    async fn by_redis_on(&self, terms: &Terms<'_>, redis: &Redis) -> Result<Decision, Outage> {
        if let Some(closed) = self.closed(terms) {
            return Ok(self.denial(self.request(terms), closed));
        }
        let (denials, clock) = (self.limiter.denials(), self.limiter.clock());
        let (request, asked_us) = (self.request(terms), clock.now_us());
        let answer = redis.decide(request).await?;
        if let Some(denials) = denials {
            denials.learn(request, answer.verdict, asked_us, clock.now_us());
        }
        Ok(self.decision_on(terms, answer))
    }

    fn by_memory_on(&self, memory: &Memory, terms: &Terms<'_>) -> Result<Decision, Outage> {
        Ok(self.decision_on(terms, memory.decide(self.request(terms))?))
    }

    fn decision(&self, request: Request<'_>, answer: Answer) -> Decision {
        let Answer { verdict, standings, at_us } = answer;
        let Request { policy, subjects, cost, peek, .. } = request;
        // A look has counted nothing that could be taken back.
        let cost = if peek { 0 } else { cost };
        let report = if standings.is_empty() { Vec::new() } else { report(policy, standings) };
        if verdict == Verdict::Admitted {
            let ticket = || Ticket::new(self.limiter.clone(), policy.clone(), subjects.to_vec(), cost, at_us);
            return Decision::Allowed(Permit::new(report, self.refundable.then(ticket)));
        }
        denied(policy, verdict, report)
    }

    fn decision_on(&self, terms: &Terms<'_>, answer: Answer) -> Decision {
        let verdict = terms.closed.unwrap_or(answer.verdict);
        self.decision(self.request(terms), Answer { verdict, ..answer })
    }

    /// A denial that the storage was not asked for.
    fn denial(&self, request: Request<'_>, verdict: Verdict) -> Decision {
        self.decision(request, Answer { verdict, standings: Vec::new(), at_us: 0 })
    }
}

/// A denial of a call that wants no report.
#[inline]
fn denied_plainly(request: Request<'_>, verdict: Verdict) -> Decision {
    denied(request.policy, verdict, Vec::new())
}

#[inline]
fn denied(policy: &Policy, verdict: Verdict, report: Vec<RuleReport>) -> Decision {
    let (rule, retry_after) = match verdict {
        Verdict::Denied { rule, retry_after } => (Some(policy.position(rule)), retry_after),
        Verdict::Banned { retry_after } => (None, Some(retry_after)),
        Verdict::Admitted => return Decision::Allowed(Permit::plain()),
    };
    Decision::Denied(Denial::new(policy.clone(), rule, retry_after, report))
}

/// Rules are reported in the order of the policy, whatever subjects they count.
fn report(policy: &Policy, standings: Vec<Standing>) -> Vec<RuleReport> {
    let rules = policy.rules();
    let standing = |(number, standing)| {
        let position = policy.position(number);
        Some(RuleReport::new(position, rules.get(position)?.clone(), standing))
    };
    let mut report: Vec<_> = standings.into_iter().enumerate().filter_map(standing).collect();
    report.sort_by_key(RuleReport::index);
    report
}

impl<'a> Check<'a> {
    /// Starts to watch how it is decided.
    #[inline]
    pub(crate) fn watch(&self) -> Watch {
        let purpose = match (self.peek, self.shadow) {
            (true, _) => Purpose::Look,
            (_, true) => Purpose::Shadow,
            _ => Purpose::Call,
        };
        Watch::start(self.policy, purpose)
    }

    /// Decides a call that this process can decide without waiting.
    pub(crate) fn decide_at_once(&self, watch: &Watch) -> Poll<Result<Decision, Outage>> {
        if self.patience.is_some() {
            return Poll::Pending;
        }
        let polled = watch.within(|| self.at_once());
        if let Poll::Ready(decided) = &polled {
            watch.tell(self.policy, decided);
        }
        polled
    }

    /// Goes on with a call that could not be decided at once.
    pub(crate) fn decide_at_length(self, watch: Watch) -> Deciding<'a> {
        Deciding { policy: self.policy, watch, state: State::Waiting(Box::pin(self.at_length())) }
    }
}

impl<'a> IntoFuture for Check<'a> {
    type Output = Result<Decision, Outage>;
    type IntoFuture = Deciding<'a>;

    #[inline]
    fn into_future(self) -> Deciding<'a> {
        Deciding { policy: self.policy, watch: self.watch(), state: State::Asked(self) }
    }
}

/// The future of a [`Check`].
#[must_use = "futures do nothing unless awaited"]
pub struct Deciding<'a> {
    policy: &'a Policy,
    watch: Watch,
    state: State<'a>,
}

enum State<'a> {
    Asked(Check<'a>),
    // Boxed, so that the future of an annotated function does not carry the state of a network call.
    Waiting(Pin<Box<dyn Future<Output = Result<Decision, Outage>> + Send + 'a>>),
    Done,
}

impl Future for Deciding<'_> {
    type Output = Result<Decision, Outage>;

    // The caller's, so that what is decided at once is written where the caller has it.
    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { watch, state, .. } = &mut *self;
        if let State::Asked(check) = state {
            let polled = check.decide_at_once(watch);
            if polled.is_ready() {
                *state = State::Done;
                return polled;
            }
        }
        self.poll_at_length(context)
    }
}

impl Deciding<'_> {
    /// Goes on from a call that cannot be decided at once.
    fn poll_at_length(&mut self, context: &mut Context<'_>) -> Poll<Result<Decision, Outage>> {
        let Self { policy, watch, state } = self;
        if let State::Asked(_) = state {
            state.go_on();
        }
        // Polled again after it was ready, which is the caller's mistake: it never is again.
        let State::Waiting(answer) = state else { return Poll::Pending };
        let polled = watch.within(|| answer.as_mut().poll(context));
        if let Poll::Ready(decided) = &polled {
            *state = State::Done;
            watch.tell(policy, decided);
        }
        polled
    }
}

impl State<'_> {
    fn go_on(&mut self) {
        if let Self::Asked(check) = mem::replace(self, Self::Done) {
            *self = Self::Waiting(Box::pin(check.at_length()));
        }
    }
}

impl fmt::Debug for Deciding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deciding").finish_non_exhaustive()
    }
}
