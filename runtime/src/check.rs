//! One call to decide by hand.

use std::borrow::Cow;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

#[cfg(feature = "redis")]
use crate::backend::Redis;
use crate::backend::{Answer, Backend, Request, Standing, Verdict};
use crate::decision::RuleReport;
use crate::key::Key;
use crate::observe::Watch;
use crate::overrides;
use crate::permit::Ticket;
use crate::policy::group::Group;
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
    keys: Keys,
    cost: u64,
    report: bool,
    peek: bool,
    refundable: bool,
    patience: Option<Patience>,
    /// A subject was named that the policy does not count.
    stranger: Option<String>,
}

/// The keys of the tallies, in the order of the policy's groups.
#[derive(Clone, Debug)]
enum Keys {
    One(Key),
    Several(Vec<Option<Key>>),
}

impl<'a> Check<'a> {
    pub(crate) fn new(limiter: &'a Limiter, policy: &'a Policy, subject: &Subject) -> Self {
        let key = |group: &Group| Key::new(limiter.prefix(), &group.segment, subject);
        let keys = match policy.groups() {
            [group] if group.label.is_none() => Keys::One(key(group)),
            groups => Keys::Several(groups.iter().map(|group| group.label.is_none().then(|| key(group))).collect()),
        };
        Self {
            limiter,
            policy,
            keys,
            cost: 1,
            report: false,
            peek: false,
            refundable: false,
            patience: None,
            stranger: None,
        }
    }

    /// Names another subject of the call, which [`PolicyBuilder::rule_on`](crate::PolicyBuilder::rule_on) gave rules.
    ///
    /// A call that leaves one of the policy's subjects out, or names one it does not have, is not decided: awaiting it is
    /// an error.
    pub fn subject(mut self, label: &str, subject: &Subject) -> Self {
        let position = self.policy.groups().iter().position(|group| group.label.as_deref() == Some(label));
        match (position, &mut self.keys) {
            (Some(position), Keys::Several(keys)) => {
                let segment = &self.policy.groups()[position].segment;
                keys[position] = Some(Key::new(self.limiter.prefix(), segment, subject));
            }
            _ => self.stranger = Some(label.to_owned()),
        }
        self
    }

    /// Sets the weight of the call, which is 1 unless it is set. A cost of 0 is decided by what is there, and counts
    /// nothing.
    pub fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// Asks the decision to report where every rule stands: see [`Decision::report`]. It makes the answer more costly.
    pub fn report(mut self) -> Self {
        self.report = true;
        self
    }

    /// Decides only: nothing is counted, neither a call nor a denial.
    pub fn peek(mut self) -> Self {
        self.peek = true;
        self
    }

    /// Makes the permit one that can be given back: see [`Permit::refund`].
    pub fn refundable(mut self) -> Self {
        self.refundable = true;
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

    /// Forgets all that the subjects of this call have done, bans included.
    ///
    /// # Errors
    ///
    /// The storage did not answer within the deadline, or a subject of the policy was left out.
    pub async fn reset(self) -> Result<(), Outage> {
        let terms = self.terms()?;
        let mut keys = self.keys()?.into_owned();
        // Where an override counts elsewhere, both are forgotten.
        keys.extend(terms.keys.iter().filter(|key| !keys.contains(key)).copied().collect::<Vec<_>>());
        let reset = self.limiter.backend().reset(&keys).await;
        self.limiter.forget_denials(&keys);
        reset
    }

    /// Bans the call's main subject for that long, as if its denials had led to it.
    ///
    /// # Errors
    ///
    /// The policy has no ban, or the storage did not answer within the deadline.
    pub async fn ban(self, duration: Duration) -> Result<(), Outage> {
        let terms = self.terms()?;
        let key = terms.keys.first().ok_or_else(|| Outage::new("a ban needs a subject"))?;
        self.limiter.backend().ban(&terms.policy, key, duration).await
    }

    /// Ends the ban of the call's main subject, if there is one; its denials are counted anew.
    ///
    /// # Errors
    ///
    /// The policy has no ban, or the storage did not answer within the deadline.
    pub async fn unban(self) -> Result<(), Outage> {
        self.ban(Duration::ZERO).await
    }

    fn keys(&self) -> Result<Cow<'_, [Key]>, Outage> {
        let name = self.policy.name();
        if let Some(stranger) = &self.stranger {
            return Err(Outage::new(format!("policy `{name}` has no rule on a subject `{stranger}`")));
        }
        match &self.keys {
            Keys::One(key) => Ok(Cow::Borrowed(std::slice::from_ref(key))),
            Keys::Several(keys) => match keys.iter().position(Option::is_none) {
                None => Ok(Cow::Owned(keys.iter().copied().flatten().collect())),
                Some(missing) => {
                    let label = self.policy.groups()[missing].label.as_deref().unwrap_or_default();
                    Err(Outage::new(format!(
                        "policy `{name}` has rules on a subject `{label}`, which the call left out"
                    )))
                }
            },
        }
    }

    pub(crate) fn limiter(&self) -> &'a Limiter {
        self.limiter
    }

    /// The key that stands for the call where it waits in line.
    pub(crate) fn first_key(&self) -> Result<Key, Outage> {
        self.keys()?.first().copied().ok_or_else(|| Outage::new("a call needs a subject"))
    }

    /// Asks once, whatever the patience.
    pub(crate) async fn ask(&self) -> Result<Decision, Outage> {
        match self.at_once() {
            Some(decided) => decided,
            None => self.later().await,
        }
    }

    /// Decides a call that this process can decide without asking.
    #[cfg_attr(not(feature = "redis"), allow(clippy::unnecessary_wraps, reason = "without Redis it can decide any"))]
    fn at_once(&self) -> Option<Result<Decision, Outage>> {
        let terms = match self.terms() {
            Ok(terms) => terms,
            Err(mistake) => return Some(Err(mistake)),
        };
        let closed = self.closed(&terms);
        let denied = match self.limiter.backend() {
            Backend::Memory(memory) => match closed {
                Some(closed) => closed,
                None => return Some(memory.decide(self.request(&terms)).map(|answer| self.decision(&terms, answer))),
            },
            // Whether the door is still closed is looked after as anything else is.
            #[cfg(feature = "redis")]
            Backend::Redis(_) if closed.is_some() && self.limiter.overrides().is_due() => return None,
            #[cfg(feature = "redis")]
            Backend::Redis(_) => closed.or_else(|| self.remembered(&terms))?,
        };
        Some(Ok(self.denial(&terms, denied)))
    }

    /// What this process remembers of such a call. Who gives permits back wants to know what others gave back.
    #[cfg(feature = "redis")]
    fn remembered(&self, terms: &Terms<'_>) -> Option<Verdict> {
        let denials = self.limiter.denials().filter(|_| !self.refundable)?;
        denials.recall(&self.request(terms), self.limiter.clock().now_us())
    }

    /// What an override says without asking anybody, if it closes the door. Only the storage knows what to report.
    fn closed(&self, terms: &Terms<'_>) -> Option<Verdict> {
        terms.closed.filter(|_| !self.report)
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
                memory.decide(self.request(&terms)).map(|answer| self.decision(&terms, answer))
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
            return Ok(self.denial(terms, closed));
        }
        let (denials, clock) = (self.limiter.denials(), self.limiter.clock());
        let (request, asked_us) = (self.request(terms), clock.now_us());
        let answer = redis.decide(request).await?;
        if let Some(denials) = denials {
            denials.learn(&request, answer.verdict, asked_us, clock.now_us());
        }
        Ok(self.decision(terms, answer))
    }

    /// The rules that are in force for this call.
    fn terms(&self) -> Result<Terms<'_>, Outage> {
        let keys = self.keys()?;
        // An override is for the main subject, whose group is the first.
        let main = self.policy.groups().first().filter(|group| group.label.is_none()).and(keys.first());
        let Some(policy) = main.and_then(|key| self.limiter.overrides().in_force(self.policy, key)) else {
            return Ok(Terms { policy: Cow::Borrowed(self.policy), keys, closed: None });
        };
        let keys = keys.iter().zip(policy.groups()).map(|(key, group)| key.with_segment(&group.segment)).collect();
        Ok(Terms { closed: overrides::closed(&policy), policy: Cow::Owned(policy), keys: Cow::Owned(keys) })
    }

    fn request<'t>(&self, terms: &'t Terms<'_>) -> Request<'t> {
        // Whoever is before a closed door gets a report at most.
        let peek = self.peek || terms.closed.is_some();
        Request { policy: &terms.policy, keys: &terms.keys, cost: self.cost, report: self.report, peek }
    }

    fn decision(&self, terms: &Terms<'_>, answer: Answer) -> Decision {
        let Answer { verdict, standings, at_us } = answer;
        let policy = terms.policy.as_ref();
        let report = report(policy, standings);
        let (rule, retry_after) = match terms.closed.unwrap_or(verdict) {
            Verdict::Admitted => {
                // A look has counted nothing that could be taken back.
                let cost = if self.peek { 0 } else { self.cost };
                let ticket = || Ticket::new(self.limiter.clone(), policy.clone(), terms.keys.to_vec(), cost, at_us);
                return Decision::Allowed(Permit::new(report, self.refundable.then(ticket)));
            }
            Verdict::Denied { rule, retry_after } => (Some(policy.position(rule)), retry_after),
            Verdict::Banned { retry_after } => (None, Some(retry_after)),
        };
        Decision::Denied(Denial::new(policy.clone(), rule, retry_after, report))
    }

    /// A denial that the storage was not asked for.
    fn denial(&self, terms: &Terms<'_>, verdict: Verdict) -> Decision {
        self.decision(terms, Answer { verdict, standings: Vec::new(), at_us: 0 })
    }
}

/// What a call is decided by: a policy, or one that stands in for it, and the keys of its tallies.
struct Terms<'a> {
    policy: Cow<'a, Policy>,
    keys: Cow<'a, [Key]>,
    /// What every call is told before a door that an override closes.
    closed: Option<Verdict>,
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

impl<'a> IntoFuture for Check<'a> {
    type Output = Result<Decision, Outage>;
    type IntoFuture = Deciding<'a>;

    fn into_future(self) -> Deciding<'a> {
        Deciding { watch: Watch::start(self.policy, !self.peek), state: State::Asked(self) }
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
