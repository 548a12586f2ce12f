//! One call to decide.

mod admin;
mod attempt;
mod decide;
mod deciding;
mod here;
mod inputs;
mod trials;
mod waiting;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tallygate_rules::CALLS;

pub use self::deciding::Deciding;
#[cfg(feature = "simulation")]
pub(crate) use self::inputs::CallSubjects;
use self::inputs::Inputs;
use crate::call::{CallOptions, WaitLimit};
use crate::decision::{Rejection, Reword};
use crate::limiter::Limiter;
use crate::policy::Policy;
use crate::subject::Subject;

/// A call that is being decided: see [`Limiter::check`].
///
/// Nothing is decided until it is awaited.
#[derive(Clone)]
#[must_use = "a call is decided when it is awaited"]
pub struct Check<'a> {
    inputs: Inputs<'a>,
    options: CallOptions,
}

#[derive(Clone, Copy)]
enum CheckSubjects {
    Main,
    All,
}

impl Limiter {
    /// Decides one call of `subject`: every rule of the policy admits and counts it, or none counts it.
    ///
    /// Awaiting the [`Check`] decides it; before that, its methods set the options of the call.
    ///
    /// # Errors
    ///
    /// A [`BackendError`](crate::BackendError): the backend could not decide within the deadline, and the policy's
    /// [`on_outage`](crate::OnOutage) rejects the call. A call that timed out may still count, and so may one whose future
    /// is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let limiter = Limiter::in_memory();
    /// let uploads = Policy::builder("uploads").rule(Rule::sliding_window(100, Duration::from_secs(60))).build()?;
    ///
    /// let decision = limiter.check(&uploads, &Subject::of("alice")).cost(30).report().await?;
    /// assert!(decision.is_allowed());
    /// assert_eq!(decision.report()[0].remaining(), 70);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn check<'a>(&'a self, policy: &'a Policy, subject: &'a Subject) -> Check<'a> {
        Check::new(self, policy, subject, CallOptions::PLAIN)
    }

    /// Waits for admission of one call of `subject`, however long it takes. It is a [`check`](Self::check) with an
    /// unlimited [`wait`](Check::wait).
    ///
    /// The decision is a denial only if the call can never be admitted.
    ///
    /// # Errors
    ///
    /// Fails with a [`BackendError`](crate::BackendError), as [`check`](Self::check) does.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let limiter = Limiter::in_memory();
    /// let pace = Policy::builder("mail").rule(Rule::sliding_window(10, Duration::from_millis(50))).build()?;
    /// for letter in 0..25 {
    ///     let permit = limiter.acquire(&pace, &Subject::everyone()).await?.into_result()?;
    ///     // send it
    /// #   let _ = (letter, permit);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire<'a>(&'a self, policy: &'a Policy, subject: &'a Subject) -> Check<'a> {
        let mut check = self.check(policy, subject);
        check.options.wait = Some(WaitLimit::Unlimited);
        check
    }

    /// Reports where `subject` stands and whether a call would be admitted, and counts nothing. It is a
    /// [`check`](Self::check) with [`peek`](Check::peek) and [`report`](Check::report).
    pub fn peek<'a>(&'a self, policy: &'a Policy, subject: &'a Subject) -> Check<'a> {
        self.check(policy, subject).peek().report()
    }
}

impl<'a> Check<'a> {
    #[inline]
    pub(crate) fn new(limiter: &'a Limiter, policy: &'a Policy, subject: &'a Subject, options: CallOptions) -> Self {
        Self { inputs: Inputs::new(limiter, policy, subject), options }
    }

    /// Returns the call with inputs that it owns.
    pub(crate) fn into_owned(self) -> Check<'static> {
        Check { inputs: self.inputs.into_owned(), options: self.options }
    }

    pub(crate) fn policy_name(&self) -> &str {
        self.policy().name()
    }

    /// Returns whether both calls count the same subjects equally often by the same rules, in the same limiter.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        let (policy, others) = (self.policy(), other.policy());
        let subjects = (self.inputs.subjects(), other.inputs.subjects());
        Arc::ptr_eq(&self.limiter().core, &other.limiter().core)
            && policy.name() == others.name()
            && policy.rules() == others.rules()
            && self.options.cost == other.options.cost
            && self.inputs.costs() == other.inputs.costs()
            && matches!(subjects, (Ok(own), Ok(others)) if own == others)
    }

    /// Adds another subject of the call, by the label that [`PolicyBuilder::rule_on`](crate::PolicyBuilder::rule_on) gave
    /// it.
    ///
    /// A call that leaves out a subject of the policy, or adds one that the policy does not have, is not decided:
    /// awaiting it is an error.
    pub fn subject(mut self, label: &str, subject: &Subject) -> Self {
        self.insert_subject(label, subject);
        self
    }

    pub(crate) fn insert_subject(&mut self, label: &str, subject: &Subject) {
        self.inputs.insert_subject(label, subject);
    }

    /// Sets the cost of the call: 1 by default. A call of cost 0 is decided by the current counts, and counts nothing
    /// itself. If all rules count other [units](Self::cost_of), awaiting a call of a cost above 1 is an error.
    #[inline]
    pub fn cost(mut self, cost: u64) -> Self {
        self.set_cost(cost);
        self
    }

    #[inline]
    pub(crate) fn set_cost(&mut self, cost: u64) {
        self.options.cost = cost;
        if cost > 1 && self.policy().has_units() {
            self.inputs.check_cost(cost);
        }
    }

    /// Sets what the call costs in a unit. `"calls"` names the [`cost`](Self::cost) of the call itself.
    ///
    /// A call is admitted if all rules of all units admit it. In a unit that it does not name, it costs nothing, and may
    /// [settle](crate::Permit::settle_units) afterwards what it has used: it is admitted while anything of the unit is
    /// left. With a cost of 0, it is denied only while more than the limit is used. A call that names a unit that no rule
    /// of its policy counts is not decided: awaiting it is an error.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let minute = Duration::from_secs(60);
    /// let policy = Policy::builder("chat")
    ///     .rule(Rule::sliding_window(60, minute))
    ///     .rule(Rule::sliding_window(20_000, minute).counting("tokens"))
    ///     .build()?;
    /// let (limiter, alice) = (Limiter::in_memory(), Subject::of("alice"));
    /// assert!(limiter.check(&policy, &alice).cost_of("tokens", 15_000).await?.is_allowed());
    /// let denial = limiter.check(&policy, &alice).cost_of("tokens", 15_000).await?.into_result().unwrap_err();
    /// assert_eq!(denial.rule().unwrap().rule().unit(), Some("tokens"));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn cost_of(mut self, unit: &str, cost: u64) -> Self {
        self.insert_cost(unit, cost);
        self
    }

    #[inline]
    pub(crate) fn insert_cost(&mut self, unit: &str, cost: u64) {
        if unit == CALLS {
            self.set_cost(cost);
        } else {
            self.inputs.insert_cost(unit, cost);
        }
    }

    /// Reports where every rule stands: see [`Decision::report`](crate::Decision::report). This takes the backend more
    /// time.
    pub fn report(mut self) -> Self {
        self.options.report = true;
        self.options.report_is_optional = false;
        self
    }

    /// Decides only: counts neither a call nor a denial.
    pub fn peek(mut self) -> Self {
        self.options.peek = true;
        self
    }

    /// Asks the rules although the subject may be paused.
    #[cfg(feature = "admin")]
    pub(crate) fn ignoring_pause(mut self) -> Self {
        self.options.ignores_pause = true;
        self
    }

    /// Decides, counts and reports to the log and the metrics, but denies nothing: to try a limit. The decision is a
    /// permit, even if a rule would deny the call or the backend does not answer.
    /// [`PolicyBuilder::shadow`](crate::PolicyBuilder::shadow) sets it for all calls of a policy.
    ///
    /// A call that would be denied is not counted, so it has nothing to refund, and it does not wait. A
    /// [peek](Self::peek) returns what would be decided.
    pub fn shadow(mut self) -> Self {
        self.options.shadow = true;
        self
    }

    /// Issues a permit that can be refunded or settled: see [`Permit::refund`](crate::Permit::refund),
    /// [`Permit::refund_on`](crate::Permit::refund_on) and [`Permit::settle`](crate::Permit::settle).
    #[inline]
    pub fn refundable(mut self) -> Self {
        self.options.refundable = true;
        self
    }

    /// Waits up to that long for admission. The decision is a denial only if the call cannot be admitted by then.
    ///
    /// Callers that wait for the same subjects in one process are admitted in order of arrival, and ask no more often
    /// than [`Denial::retry_after`](crate::Denial::retry_after) allows. A denial whose `retry_after` ends later than
    /// the wait is returned at once. Under a concurrency limit, `retry_after` is only a bound: the first caller asks
    /// when a running call ends, and every half a second. A caller that is dropped while it waits has counted nothing,
    /// unless an answer was already on its way.
    ///
    /// It needs a tokio runtime with time enabled, or [`blocking_decide`](Self::blocking_decide).
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
    pub fn wait(mut self, limit: Duration) -> Self {
        self.options.wait = Some(WaitLimit::Within(limit));
        self
    }

    /// Sets the text of a denial for the end user, in place of the usual one: the [message](Rejection::message) of its
    /// rejection. `None` leaves the usual text. A check by `check_fn` has the `message`s of its attribute.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rejection, Rule, Subject};
    ///
    /// let (limiter, alice) = (Limiter::in_memory(), Subject::of("alice"));
    /// let policy = Policy::builder("export").rule(Rule::sliding_window(1, Duration::from_secs(60))).build()?;
    /// let closed = policy.with_counts([0]);
    /// let check = limiter.check(&closed, &alice).messages(|rejection| match rejection.retry_after() {
    ///     Some(wait) => Some(format!("your next export is possible in {} s", wait.as_secs() + 1)),
    ///     None => Some("exports are closed".to_owned()),
    /// });
    /// let rejection = Rejection::from(check.await?.into_result().unwrap_err());
    /// assert_eq!(rejection.to_string(), "exports are closed");
    /// # Ok(())
    /// # }
    /// ```
    pub fn messages(self, messages: impl Fn(&Rejection) -> Option<String> + Send + Sync + 'static) -> Self {
        self.reworded_by(Arc::new(move |rejection: Rejection| match messages(&rejection) {
            Some(message) => rejection.with_message(message),
            None => rejection,
        }))
    }

    pub(crate) fn reworded_by(mut self, reword: Arc<Reword>) -> Self {
        self.inputs.set_messages(reword);
        self
    }

    #[inline]
    fn limiter(&self) -> &Limiter {
        self.inputs.limiter()
    }

    #[inline]
    fn policy(&self) -> &Policy {
        self.inputs.policy()
    }
}

/// Leaves out the subjects, which may be personal.
impl fmt::Debug for Check<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallOptions { cost, wait, .. } = self.options;
        f.debug_struct("Check")
            .field("policy", &self.policy().name())
            .field("cost", &cost)
            .field("wait", &wait)
            .finish_non_exhaustive()
    }
}
