//! One call to decide by hand.

mod deciding;
mod terms;

use std::time::Duration;

pub use self::deciding::Deciding;
use self::terms::Subjects;
use crate::key::Key;
use crate::wait::Patience;
use crate::{Limiter, Outage, Policy, Subject};

/// A call that is being decided: see [`Limiter::check`].
///
/// Nothing is decided until it is awaited.
#[derive(Clone, Debug)]
#[must_use = "a call is decided when it is awaited"]
#[allow(clippy::struct_excessive_bools, reason = "each is said by a method of its own")]
pub struct Check<'a> {
    limiter: &'a Limiter,
    policy: &'a Policy,
    subjects: Subjects<'a>,
    cost: u64,
    report: bool,
    peek: bool,
    refundable: bool,
    patience: Option<Patience>,
    /// Whoever asks goes on whatever is decided.
    shadow: bool,
}

impl<'a> Check<'a> {
    #[inline]
    pub(crate) fn new(limiter: &'a Limiter, policy: &'a Policy, subject: &'a Subject) -> Self {
        Self {
            limiter,
            policy,
            subjects: Subjects::new(policy, subject),
            cost: 1,
            report: false,
            peek: false,
            refundable: false,
            patience: None,
            shadow: false,
        }
    }

    /// Names another subject of the call, which [`PolicyBuilder::rule_on`](crate::PolicyBuilder::rule_on) gave rules.
    ///
    /// A call that leaves one of the policy's subjects out, or names one it does not have, is not decided: awaiting it is
    /// an error.
    pub fn subject(mut self, label: &str, subject: &Subject) -> Self {
        self.subjects.name(self.policy, label, subject);
        self
    }

    /// Sets the weight of the call, which is 1 unless it is set. A cost of 0 is decided by what is there, and counts
    /// nothing.
    #[inline]
    pub fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// Asks the decision to report where every rule stands: see [`Decision::report`](crate::Decision::report). It makes
    /// the answer more costly.
    pub fn report(mut self) -> Self {
        self.report = true;
        self
    }

    /// Decides only: nothing is counted, neither a call nor a denial.
    pub fn peek(mut self) -> Self {
        self.peek = true;
        self
    }

    /// Makes the permit one that can be given back: see [`Permit::refund`](crate::Permit::refund).
    #[inline]
    pub fn refundable(mut self) -> Self {
        self.refundable = true;
        self
    }

    /// Waits up to that long for admission. The decision is a denial only if the call cannot be admitted by then.
    ///
    /// Callers that wait for one subject in one process are admitted in the order they came, and ask no more often than
    /// [`Denial::retry_after`](crate::Denial::retry_after) says. A denial that lies beyond the time to wait is returned
    /// at once. Who is dropped while it waits has counted nothing, unless an answer was already under way.
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

    /// Has a denial told as that of a call which goes on all the same.
    #[inline]
    pub(crate) fn shadow(mut self) -> Self {
        self.shadow = true;
        self
    }

    /// Forgets all that the subjects of this call have done, bans included.
    ///
    /// # Errors
    ///
    /// The storage did not answer within the deadline, or a subject of the policy was left out.
    pub async fn reset(self) -> Result<(), Outage> {
        for terms in self.all_terms()? {
            let request = self.request(&terms);
            let reset = self.limiter.backend().reset(request).await;
            self.limiter.forget_denials(request);
            reset?;
        }
        Ok(())
    }

    /// Bans the call's main subject for that long, as if its denials had led to it: for 3,660 days at most. A ban of no time
    /// at all ends the one that there is.
    ///
    /// # Errors
    ///
    /// The policy has no ban, or the storage did not answer within the deadline.
    pub async fn ban(self, duration: Duration) -> Result<(), Outage> {
        for terms in self.all_terms()? {
            self.limiter.backend().ban(self.request(&terms), duration).await?;
        }
        Ok(())
    }

    /// Ends the ban of the call's main subject, if there is one; its denials are counted anew.
    ///
    /// # Errors
    ///
    /// The policy has no ban, or the storage did not answer within the deadline.
    pub async fn unban(self) -> Result<(), Outage> {
        self.ban(Duration::ZERO).await
    }

    /// The same call, asked so that it counts nothing, where its denial would count towards a ban.
    pub(crate) fn look(&self) -> Option<Self> {
        let counts = self.policy.ban().is_some() && !self.peek;
        counts.then(|| Self { peek: true, report: false, refundable: false, ..self.clone() })
    }

    pub(crate) fn limiter(&self) -> &'a Limiter {
        self.limiter
    }

    /// The key that stands for the call where it waits in line.
    pub(crate) fn first_key(&self) -> Result<Key, Outage> {
        let terms = self.own_terms()?;
        let first = self.request(&terms).names().next().ok_or_else(|| Outage::new("a call needs a subject"))?;
        Ok(Key::new(self.limiter.prefix(), &first.group.segment, first.subject))
    }
}
