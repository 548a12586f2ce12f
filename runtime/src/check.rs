//! One call to decide by hand.

use std::borrow::Cow;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::backend::{Answer, Backend, Request, Standing, Verdict};
use crate::decision::RuleReport;
use crate::key::Key;
use crate::permit::Ticket;
use crate::policy::group::Group;
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
        Self { limiter, policy, keys, cost: 1, report: false, peek: false, refundable: false, stranger: None }
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

    /// Forgets all that the subjects of this call have done, bans included.
    ///
    /// # Errors
    ///
    /// The storage did not answer within the deadline, or a subject of the policy was left out.
    pub async fn reset(self) -> Result<(), Outage> {
        self.limiter.backend().reset(&self.keys()?).await
    }

    /// Bans the call's main subject for that long, as if its denials had led to it.
    ///
    /// # Errors
    ///
    /// The policy has no ban, or the storage did not answer within the deadline.
    pub async fn ban(self, duration: Duration) -> Result<(), Outage> {
        let keys = self.keys()?;
        let key = keys.first().ok_or_else(|| Outage::new("a ban needs a subject"))?;
        self.limiter.backend().ban(self.policy, key, duration).await
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

    fn request<'k>(&'k self, keys: &'k [Key]) -> Request<'k> {
        Request { policy: self.policy, keys, cost: self.cost, report: self.report, peek: self.peek }
    }

    fn decision(&self, keys: &[Key], answer: Answer) -> Decision {
        let report = self.report_of(answer.standings);
        let (rule, retry_after) = match answer.verdict {
            Verdict::Admitted => {
                let ticket = self.refundable.then(|| {
                    Ticket::new(self.limiter.clone(), self.policy.clone(), keys.to_vec(), self.cost, answer.at_us)
                });
                return Decision::Allowed(Permit::new(report, ticket));
            }
            Verdict::Denied { rule, retry_after } => (Some(self.policy.position(rule)), retry_after),
            Verdict::Banned { retry_after } => (None, Some(retry_after)),
        };
        Decision::Denied(Denial::new(self.policy.clone(), rule, retry_after, report))
    }

    /// Rules are reported in the order of the policy, whatever subjects they count.
    fn report_of(&self, standings: Vec<Standing>) -> Vec<RuleReport> {
        let rules = self.policy.rules();
        let mut report: Vec<_> = standings
            .into_iter()
            .enumerate()
            .filter_map(|(number, standing)| {
                let position = self.policy.position(number);
                Some(RuleReport::new(position, rules.get(position)?.clone(), standing))
            })
            .collect();
        report.sort_by_key(RuleReport::index);
        report
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
                Backend::Memory(memory) => Poll::Ready(check.keys().and_then(|keys| {
                    let answer = memory.decide(check.request(&keys))?;
                    Ok(check.decision(&keys, answer))
                })),
                // Boxed, so that the future of an annotated function does not carry the state of a network call.
                #[cfg(feature = "redis")]
                Backend::Redis(redis) => {
                    self.0 = State::Waiting(Box::pin(async move {
                        let keys = check.keys()?;
                        let answer = redis.decide(check.request(&keys)).await?;
                        Ok(check.decision(&keys, answer))
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
