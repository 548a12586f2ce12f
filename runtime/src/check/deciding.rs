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
            Some(decided) => decided,
            None => self.later().await,
        }
    }

    /// Decides a call that this process can decide without asking.
    #[cfg_attr(not(feature = "redis"), allow(clippy::unnecessary_wraps, reason = "without Redis it can decide any"))]
    #[inline]
    fn at_once(&self) -> Option<Result<Decision, Outage>> {
        let Some(request) = self.plain() else { return self.at_once_by_terms() };
        match self.limiter.backend() {
            Backend::Memory(memory) => Some(self.by_memory(memory, request)),
            #[cfg(feature = "redis")]
            Backend::Redis(_) => Some(Ok(self.denial(request, self.remembered(request)?))),
        }
    }

    /// The same, whatever subjects the call has and whatever rules are in force.
    #[cfg_attr(not(feature = "redis"), allow(clippy::unnecessary_wraps, reason = "without Redis it can decide any"))]
    #[inline(never)]
    fn at_once_by_terms(&self) -> Option<Result<Decision, Outage>> {
        let terms = match self.terms() {
            Ok(terms) => terms,
            Err(mistake) => return Some(Err(mistake)),
        };
        let closed = self.closed(&terms);
        let denied = match self.limiter.backend() {
            Backend::Memory(memory) => match closed {
                Some(closed) => closed,
                None => return Some(self.by_memory_on(memory, &terms)),
            },
            // Whether the door is still closed is looked after as anything else is.
            #[cfg(feature = "redis")]
            Backend::Redis(_) if closed.is_some() && self.limiter.overrides().is_due() => return None,
            #[cfg(feature = "redis")]
            Backend::Redis(_) => closed.or_else(|| self.remembered(self.request(&terms)))?,
        };
        Some(Ok(self.denial(self.request(&terms), denied)))
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

    #[inline]
    fn by_memory(&self, memory: &Memory, request: Request<'_>) -> Result<Decision, Outage> {
        Ok(self.decision(request, memory.decide(request)?))
    }

    #[inline]
    fn decision(&self, request: Request<'_>, answer: Answer) -> Decision {
        if answer.verdict == Verdict::Admitted && !self.refundable && answer.standings.is_empty() {
            return Decision::Allowed(Permit::new(Vec::new(), None));
        }
        self.decision_at_length(request, answer)
    }

    /// The same of any answer.
    fn decision_at_length(&self, request: Request<'_>, answer: Answer) -> Decision {
        let Answer { verdict, standings, at_us } = answer;
        let Request { policy, subjects, cost, peek, .. } = request;
        // A look has counted nothing that could be taken back.
        let cost = if peek { 0 } else { cost };
        let report = if standings.is_empty() { Vec::new() } else { report(policy, standings) };
        let (rule, retry_after) = match verdict {
            Verdict::Admitted => {
                let ticket = || Ticket::new(self.limiter.clone(), policy.clone(), subjects.to_vec(), cost, at_us);
                return Decision::Allowed(Permit::new(report, self.refundable.then(ticket)));
            }
            Verdict::Denied { rule, retry_after } => (Some(policy.position(rule)), retry_after),
            Verdict::Banned { retry_after } => (None, Some(retry_after)),
        };
        Decision::Denied(Denial::new(policy.clone(), rule, retry_after, report))
    }

    fn decision_on(&self, terms: &Terms<'_>, answer: Answer) -> Decision {
        let verdict = terms.closed.unwrap_or(answer.verdict);
        self.decision(self.request(terms), Answer { verdict, ..answer })
    }

    /// A denial that the storage was not asked for.
    #[inline]
    fn denial(&self, request: Request<'_>, verdict: Verdict) -> Decision {
        self.decision(request, Answer { verdict, standings: Vec::new(), at_us: 0 })
    }
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
    #[inline]
    pub(crate) fn decide_at_once(&self, watch: &Watch) -> Option<Result<Decision, Outage>> {
        if self.patience.is_some() {
            return None;
        }
        let decided = watch.within(|| self.at_once())?;
        watch.tell(self.policy, &decided);
        Some(decided)
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

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { policy, watch, state } = &mut *self;
        if let State::Asked(check) = state {
            if let Some(decided) = check.decide_at_once(watch) {
                *state = State::Done;
                return Poll::Ready(decided);
            }
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
    /// Goes on from a call that cannot be decided at once.
    #[cold]
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
