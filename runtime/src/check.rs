//! One call to decide by hand.

use std::borrow::Cow;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

use std::time::Duration;

#[cfg(feature = "redis")]
use crate::backend::Redis;
use crate::backend::{Answer, Backend, Request, Verdict};
use crate::decision::RuleReport;
use crate::key::Key;
use crate::observe::Watch;
use crate::overrides;
use crate::wait::{self, Patience};
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
    patience: Option<Patience>,
}

impl<'a> Check<'a> {
    pub(crate) fn new(limiter: &'a Limiter, policy: &'a Policy, subject: &Subject) -> Self {
        let key = Key::new(limiter.prefix(), policy.segment(), subject);
        Self { limiter, policy, key, cost: 1, report: false, patience: None }
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

    /// Waits up to that long for admission. The decision is a denial only if the call cannot be admitted by then.
    ///
    /// Callers that wait for one subject in one process are admitted in the order they came, and ask no more often than
    /// [`Denial::retry_after`] says. A denial that lies beyond the time to wait is returned at once. Who is dropped
    /// while it waits has counted nothing, unless an answer was already under way.
    ///
    /// It needs a tokio runtime with time enabled.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let (limiter, alice) = (Limiter::in_memory(), Subject::of("alice"));
    /// let policy = Policy::builder("export").rule(Rule::sliding_window(1, Duration::from_millis(20))).build()?;
    /// for _ in 0..3 {
    ///     assert!(limiter.check(&policy, &alice).wait(Duration::from_secs(2)).await?.is_allowed());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(mut self, patience: Duration) -> Self {
        self.patience = Some(Patience::Within(patience));
        self
    }

    pub(crate) fn wait_endlessly(mut self) -> Self {
        self.patience = Some(Patience::Endless);
        self
    }

    pub(crate) fn limiter(&self) -> &'a Limiter {
        self.limiter
    }

    /// The key of the call's main tally.
    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Asks once, whatever the patience.
    pub(crate) async fn ask(&self) -> Result<Decision, Outage> {
        match self.at_once() {
            Some(decided) => decided,
            None => self.later().await,
        }
    }

    /// Decides a call that this process can decide without asking.
    #[cfg_attr(not(feature = "redis"), allow(clippy::unnecessary_wraps, reason = "without Redis it decides them all"))]
    fn at_once(&self) -> Option<Result<Decision, Outage>> {
        let terms = self.terms();
        let request = self.request(&terms);
        let verdict = match (self.limiter.backend(), terms.closed(&request)) {
            (Backend::Memory(_), Some(closed)) => closed,
            (Backend::Memory(memory), None) => {
                return Some(memory.decide(request).map(|answer| Self::decision(&terms, answer)));
            }
            // Whether the door is still closed is looked after as anything else is.
            #[cfg(feature = "redis")]
            (Backend::Redis(_), Some(_)) if self.limiter.overrides().is_due() => return None,
            #[cfg(feature = "redis")]
            (Backend::Redis(_), Some(closed)) => closed,
            #[cfg(feature = "redis")]
            (Backend::Redis(_), None) => self.limiter.denials()?.recall(&request, self.limiter.clock().now_us())?,
        };
        Some(Ok(Self::decision(&terms, Answer { verdict, standings: Vec::new() })))
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
                let terms = self.terms();
                memory.decide(self.request(&terms)).map(|answer| Self::decision(&terms, answer))
            }
            #[cfg(feature = "redis")]
            Backend::Redis(redis) => self.by_redis(redis).await,
        }
    }

    #[cfg(feature = "redis")]
    async fn by_redis(&self, redis: &Redis) -> Result<Decision, Outage> {
        let Some(mut looking) = self.limiter.overrides().look(self.limiter) else {
            return self.by_redis_on(&self.terms(), redis).await;
        };
        // One deadline for both: the look at the overrides and the decision.
        let decided = tokio::time::timeout(redis.deadline(), async {
            // It is over when the other end is gone.
            while looking.changed().await.is_ok() {}
            self.by_redis_on(&self.terms(), redis).await
        });
        decided.await.unwrap_or_else(|_| Err(Outage::new("redis: no answer within the deadline")))
    }

    #[cfg(feature = "redis")]
    async fn by_redis_on(&self, terms: &Terms<'_>, redis: &Redis) -> Result<Decision, Outage> {
        let request = self.request(terms);
        if let Some(verdict) = terms.closed(&request) {
            return Ok(Self::decision(terms, Answer { verdict, standings: Vec::new() }));
        }
        let (denials, clock) = (self.limiter.denials(), self.limiter.clock());
        let asked_us = clock.now_us();
        let answer = redis.decide(request).await?;
        if let Some(denials) = denials {
            denials.learn(&request, answer.verdict, asked_us, clock.now_us());
        }
        Ok(Self::decision(terms, answer))
    }

    /// The rules that are in force for this call.
    fn terms(&self) -> Terms<'_> {
        match self.limiter.overrides().in_force(self.policy, &self.key) {
            None => Terms { policy: Cow::Borrowed(self.policy), key: Cow::Borrowed(&self.key) },
            Some(policy) => {
                let key = self.key.with_segment(policy.segment());
                Terms { policy: Cow::Owned(policy), key: Cow::Owned(key) }
            }
        }
    }

    fn request<'t>(&self, terms: &'t Terms<'_>) -> Request<'t> {
        Request { policy: &terms.policy, keys: std::slice::from_ref(&*terms.key), cost: self.cost, report: self.report }
    }

    fn decision(terms: &Terms<'_>, answer: Answer) -> Decision {
        let report = terms.policy.rules().iter().cloned().zip(answer.standings).enumerate();
        let report: Vec<_> = report.map(|(index, (rule, standing))| RuleReport::new(index, rule, standing)).collect();
        match answer.verdict {
            Verdict::Admitted => Decision::Allowed(Permit::new(report)),
            Verdict::Denied { rule, retry_after } => {
                Decision::Denied(Denial::new(terms.policy.as_ref().clone(), rule, retry_after, report))
            }
        }
    }
}

/// What a call is decided by: a policy, or one that stands in for it, and the key of the tally.
struct Terms<'a> {
    policy: Cow<'a, Policy>,
    key: Cow<'a, Key>,
}

impl Terms<'_> {
    /// What an override says without asking anybody, if it closes the door.
    fn closed(&self, request: &Request<'_>) -> Option<Verdict> {
        matches!(self.policy, Cow::Owned(_)).then(|| overrides::closed(request))?
    }
}

impl<'a> IntoFuture for Check<'a> {
    type Output = Result<Decision, Outage>;
    type IntoFuture = Deciding<'a>;

    fn into_future(self) -> Deciding<'a> {
        Deciding { watch: Watch::start(self.policy), state: State::Asked(self) }
    }
}

/// The future of a [`Check`].
#[must_use = "futures do nothing unless awaited"]
pub struct Deciding<'a> {
    watch: Watch<'a>,
    state: State<'a>,
}

#[allow(clippy::large_enum_variant, reason = "lives on the stack for one decision; boxing it would cost more")]
enum State<'a> {
    Asked(Check<'a>),
    Waiting(Pin<Box<dyn Future<Output = Result<Decision, Outage>> + Send + 'a>>),
    Done,
}

impl Future for Deciding<'_> {
    type Output = Result<Decision, Outage>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { watch, state } = &mut *self;
        let polled = watch.within(|| state.poll(context));
        if let Poll::Ready(decided) = &polled {
            watch.tell(decided);
        }
        polled
    }
}

impl State<'_> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Decision, Outage>> {
        match std::mem::replace(self, Self::Done) {
            Self::Asked(check) => {
                let decided = if check.patience.is_none() { check.at_once() } else { None };
                if let Some(decided) = decided {
                    return Poll::Ready(decided);
                }
                // Boxed, so that the future of an annotated function does not carry the state of a network call.
                *self = Self::Waiting(Box::pin(check.at_length()));
                self.poll(context)
            }
            Self::Waiting(mut answer) => {
                let polled = answer.as_mut().poll(context);
                if polled.is_pending() {
                    *self = Self::Waiting(answer);
                }
                polled
            }
            // Polled again after it was ready, which is the caller's mistake: it never is again.
            Self::Done => Poll::Pending,
        }
    }
}

impl fmt::Debug for Deciding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deciding").finish_non_exhaustive()
    }
}
