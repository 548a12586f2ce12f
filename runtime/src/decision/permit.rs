//! The proof that a call was admitted, which may be refunded.

use std::sync::Arc;
use std::time::Duration;

use super::charge::{Charge, Recount, RecountTicket};
use super::decided_by::DecidedBy;
use super::lease::{Lease, OnlyLease};
use super::meter::Metering;
use super::pause::PauseTicket;
use super::pause_source::SaidPause;
use super::report::{Report, RuleStatus};
use crate::error::BackendError;
use crate::observe::{log, opaque_debug};
use crate::policy::Policy;
use crate::system::under_way::CountedTask;

/// The proof that a call was admitted.
///
/// Under [`Rule::concurrency`](crate::Rule::concurrency), the call runs until its permit is dropped. Refunding or
/// settling a permit consumes it, and so ends the call, too.
pub struct Permit {
    extras: Extras,
    decided_by: DecidedBy,
}

/// What a permit has beside who admitted the call. Dropping a permit without extras, which most are, is one branch.
enum Extras {
    None,
    /// The lease of a call that asks for nothing else.
    Lease(OnlyLease),
    // An `Arc`, although permits do not share it: dropping a box would be more code in each limited function.
    Parts(Arc<PermitExtras>),
}

/// The parts of a permit that only some calls ask for.
#[derive(Default)]
struct PermitExtras {
    report: Report,
    /// A subject that uses this share of a limit is near it.
    warn_at: Option<f64>,
    /// Boxed, as few calls can be refunded, and it is large.
    ticket: Option<Box<RecountTicket>>,
    /// Set once a meter was asked for. It then has the ticket in place of `ticket`.
    metering: Option<Arc<Metering>>,
    /// Only if the policy can be paused.
    pausing: Option<Box<PauseTicket>>,
    lease: Option<Lease>,
}

impl Permit {
    #[inline]
    pub(crate) const fn plain(decided_by: DecidedBy) -> Self {
        Self { extras: Extras::None, decided_by }
    }

    pub(crate) fn new(
        decided_by: DecidedBy,
        report: Report,
        warn_at: Option<f64>,
        ticket: Option<Box<RecountTicket>>,
        lease: Option<Lease>,
    ) -> Self {
        Self::with_extras(decided_by, PermitExtras { report, warn_at, ticket, metering: None, pausing: None, lease })
    }

    /// Returns the permit of a call that holds a lease, and asks for nothing else.
    #[inline]
    pub(crate) fn with_lease(decided_by: DecidedBy, lease: OnlyLease) -> Self {
        Self { extras: Extras::Lease(lease), decided_by }
    }

    fn with_extras(decided_by: DecidedBy, extras: PermitExtras) -> Self {
        let PermitExtras { report, ticket, metering, pausing, lease, .. } = &extras;
        let is_plain =
            report.is_empty() && ticket.is_none() && metering.is_none() && pausing.is_none() && lease.is_none();
        let extras = if is_plain { Extras::None } else { Extras::Parts(Arc::new(extras)) };
        Self { extras, decided_by }
    }

    fn extras(&self) -> Option<&PermitExtras> {
        match &self.extras {
            Extras::Parts(extras) => Some(extras),
            Extras::None | Extras::Lease(_) => None,
        }
    }

    fn extras_mut(&mut self) -> Option<&mut PermitExtras> {
        match &mut self.extras {
            Extras::Parts(extras) => Arc::get_mut(extras),
            Extras::None | Extras::Lease(_) => None,
        }
    }

    fn into_extras(self) -> Option<PermitExtras> {
        match self.extras {
            Extras::None => None,
            Extras::Lease(lease) => Some(PermitExtras { lease: Some(Box::new(lease)), ..PermitExtras::default() }),
            Extras::Parts(extras) => Arc::into_inner(extras),
        }
    }

    /// Lets the permit pause the subject of its call.
    pub(crate) fn with_pausing(self, pausing: Box<PauseTicket>) -> Self {
        let (decided_by, pausing) = (self.decided_by, Some(pausing));
        let extras = self.into_extras().unwrap_or_default();
        Self::with_extras(decided_by, PermitExtras { pausing, ..extras })
    }

    /// Returns who admitted the call: the backend, or what takes its place while Redis is away.
    #[must_use]
    pub fn decided_by(&self) -> DecidedBy {
        self.decided_by
    }

    /// Returns where every rule whose count is known stands after the call, if [`Check::report`](crate::Check::report)
    /// asked for it, or the policy [warns](crate::PolicyBuilder::warn_at); else nothing.
    #[must_use]
    pub fn report(&self) -> &[RuleStatus] {
        self.extras().map_or(&[], |extras| extras.report.rules())
    }

    pub(super) fn trials(&self) -> &[RuleStatus] {
        self.extras().map_or(&[], |extras| extras.report.trials())
    }

    pub(super) fn with_trials(self, trials: Vec<RuleStatus>) -> Self {
        let decided_by = self.decided_by;
        let extras = self.into_extras().unwrap_or_default();
        Self::with_extras(decided_by, PermitExtras { report: extras.report.with_trials(trials), ..extras })
    }

    /// Returns the status of the rule whose limit the subject is near after this call. If there are several, it is the
    /// one with the smallest share left. `None` if the subject is near no limit, or if the policy has no
    /// [`warn_at`](crate::PolicyBuilder::warn_at).
    #[must_use]
    pub fn warning(&self) -> Option<&RuleStatus> {
        let share = self.extras()?.warn_at?;
        let near = self.report().iter().filter(|status| status.is_near(share));
        // Compares the shares that are left without a division: a/b < c/d if a·d < c·b.
        near.min_by(|one, other| {
            let scaled = |of: &RuleStatus, by: &RuleStatus| u128::from(of.remaining()) * u128::from(by.limit());
            scaled(one, other).cmp(&scaled(other, one))
        })
    }

    /// Pauses the main subject of this call, or [the one that the policy names](crate::PolicyBuilder::pausable_on), for
    /// `length`, because the other side said so: see [`PolicyBuilder::pausable`](crate::PolicyBuilder::pausable). The call
    /// stays counted, and its permit usable.
    ///
    /// It works as [`Check::pause`](crate::Check::pause) does, also for a call that is in shadow or that was admitted while
    /// Redis was away. Many calls may hear of one pause: if this process has told Redis of one that ends as late, or is telling it,
    /// nothing is sent, and this returns at once.
    ///
    /// # Errors
    ///
    /// * The policy cannot be paused.
    /// * The backend did not answer within the deadline. This process honours the pause all the same, and sends it again with
    ///   later calls.
    pub async fn pause(&self, length: Duration) -> Result<(), BackendError> {
        self.pause_as(length.into()).await
    }

    async fn pause_as(&self, said: SaidPause) -> Result<(), BackendError> {
        match self.pausing() {
            Some(pausing) => pausing.pause(said).await,
            None => Err(not_pausable()),
        }
    }

    /// Pauses as [`pause`](Self::pause) does, and blocks the calling thread meanwhile: for functions that are not async.
    /// [`Check::blocking_decide`](crate::Check::blocking_decide) says on which threads.
    ///
    /// # Errors
    ///
    /// Fails as [`pause`](Self::pause) does.
    pub fn blocking_pause(&self, length: Duration) -> Result<(), BackendError> {
        self.pausing().map_or_else(|| Err(not_pausable()), |pausing| pausing.blocking_pause(length.into()))
    }

    /// Says that the other side has accepted this call. If it is the one that is tried after a pause, its subject is open for
    /// all again: see [`PolicyBuilder::pausable`](crate::PolicyBuilder::pausable). For any other call, nothing happens and
    /// nothing is sent.
    ///
    /// The call stays counted, and its permit usable. A permit that is dropped without this or a [pause](Self::pause) lets
    /// another call be tried. So does one that is refunded or settled: say this before.
    ///
    /// # Errors
    ///
    /// * The policy cannot be paused.
    /// * The backend did not answer within the deadline. Then it may be said again; if not, another call is tried when the permit is
    ///   dropped, or after a minute.
    pub async fn succeeded(&self) -> Result<(), BackendError> {
        match self.pausing() {
            Some(pausing) => pausing.succeeded().await,
            None => Err(not_pausable()),
        }
    }

    /// Says as [`succeeded`](Self::succeeded) does, and blocks the calling thread meanwhile: for functions that are not async.
    /// [`Check::blocking_decide`](crate::Check::blocking_decide) says on which threads.
    ///
    /// # Errors
    ///
    /// Fails as [`succeeded`](Self::succeeded) does.
    pub fn blocking_succeeded(&self) -> Result<(), BackendError> {
        self.pausing().map_or_else(|| Err(not_pausable()), PauseTicket::blocking_succeeded)
    }

    /// Whether something ends with this permit: the lease of a call, its turn to be tried after a pause, or what its meters say.
    #[cfg(feature = "client")]
    pub(crate) fn is_of_running_call(&self) -> bool {
        match &self.extras {
            Extras::None => false,
            Extras::Lease(_) => true,
            Extras::Parts(parts) => parts.lease.is_some() || parts.metering.is_some() || self.is_probe(),
        }
    }

    /// Whether the call is the one that is tried after a pause.
    pub(crate) fn is_probe(&self) -> bool {
        self.pausing().is_some_and(PauseTicket::is_probe)
    }

    /// Pauses for a function whose body has run, or says that it has succeeded if there is no length. A pause of which others do
    /// not hear is only logged.
    pub(crate) async fn pause_logged(&self, said: Option<SaidPause>) {
        match said {
            Some(said) => self.log_pause(self.pause_as(said).await),
            // If the store does not hear of it, another call is tried once this permit is dropped.
            None => drop(self.succeeded().await),
        }
    }

    /// Begins a pause of the subject, if the policy lets it be paused: this process honours it at once, and the others are told in
    /// the background.
    pub(crate) fn begin_pause_logged(&self, said: SaidPause) {
        if let Some(pausing) = self.pausing() {
            self.log_pause(pausing.begin_pause(said));
        }
    }

    /// Says that the call has succeeded, of which others hear in the background.
    pub(crate) fn begin_success(&self) {
        if let Some(pausing) = self.pausing() {
            pausing.begin_success();
        }
    }

    pub(crate) fn blocking_pause_logged(&self, length: Option<Duration>) {
        match length {
            Some(length) => self.log_pause(self.blocking_pause(length)),
            None => drop(self.blocking_succeeded()),
        }
    }

    fn log_pause(&self, paused: Result<(), BackendError>) {
        if let (Err(error), Some(pausing)) = (paused, self.pausing()) {
            log::not_paused(pausing.policy_name(), &error);
        }
    }

    fn pausing(&self) -> Option<&PauseTicket> {
        self.extras()?.pausing.as_deref()
    }

    /// Refunds the permit: removes exactly the hits of this call, even if other calls were admitted since.
    ///
    /// Returns whether a rule still counted the call. Not removed are hits that are out of their window, tokens that
    /// have flowed into a bucket again, and hits of sliding windows with more than 1,024 later calls stored behind
    /// them. A call that was admitted while Redis was away is refunded in this process, where it was counted.
    ///
    /// Dropping a permit refunds nothing. If this future is dropped before it is ready, the hits may or may not have
    /// been removed; of several subjects, perhaps only those of some.
    ///
    /// # Errors
    ///
    /// * The backend did not answer within the deadline. The hits may have been removed or not; a second attempt is not
    ///   possible, as it could remove another call's hits.
    /// * The call was not [`refundable`](crate::Check::refundable).
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
    /// let policy = Policy::builder("login").rule(Rule::sliding_window(1, Duration::from_secs(60))).build()?;
    ///
    /// let permit = limiter.check(&policy, &alice).refundable().await?.into_result()?;
    /// assert!(permit.refund().await?);
    /// assert!(limiter.check(&policy, &alice).await?.is_allowed());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn refund(self) -> Result<bool, BackendError> {
        let _counted = self.begin_correction();
        self.into_ticket()?.recount(Recount::REFUND).await
    }

    /// Refunds the permit as [`refund`](Self::refund) does, and blocks the calling thread meanwhile: for functions that
    /// are not async. [`Check::blocking_decide`](crate::Check::blocking_decide) says on which threads.
    ///
    /// # Errors
    ///
    /// Fails as [`refund`](Self::refund) does.
    pub fn blocking_refund(self) -> Result<bool, BackendError> {
        self.into_ticket()?.blocking_recount(&Recount::REFUND)
    }

    /// Refunds the permit on one of several subjects: removes the hits of this call that the rules with this label
    /// count, and leaves the others. [`PolicyBuilder::rule_on`](crate::PolicyBuilder::rule_on) sets the label of a
    /// rule.
    ///
    /// In the attribute, `refund_key = "…"` and `prevent_duplicate(release_if = …)` do this: a failed submission may be
    /// repeated at once, and its other limits still count it. Otherwise it works like [`refund`](Self::refund). If all
    /// rules with this label are in shadow, they are refunded, and the result is `false`.
    ///
    /// # Errors
    ///
    /// Fails as [`refund`](Self::refund) does, or because the policy has no rule with this label.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let (limiter, alice, order) = (Limiter::in_memory(), Subject::of("alice"), Subject::of("order").and(7));
    /// let policy = Policy::builder("orders")
    ///     .rule(Rule::sliding_window(2, Duration::from_secs(60)))
    ///     .rule_on("order", Rule::duplicate(Duration::from_secs(5)))
    ///     .build()?;
    /// let submit = || limiter.check(&policy, &alice).subject("order", &order).refundable();
    ///
    /// let permit = submit().await?.into_result()?;
    /// assert!(!submit().await?.is_allowed());
    /// // The order could not be placed.
    /// assert!(permit.refund_on("order").await?);
    /// assert!(submit().await?.is_allowed());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn refund_on(self, label: &str) -> Result<bool, BackendError> {
        self.refund_subject(Some(label)).await
    }

    /// Refunds as [`refund_on`](Self::refund_on) does, and blocks the calling thread meanwhile.
    ///
    /// # Errors
    ///
    /// Fails as [`refund_on`](Self::refund_on) does.
    pub fn blocking_refund_on(self, label: &str) -> Result<bool, BackendError> {
        self.blocking_refund_subject(Some(label))
    }

    /// Refunds the permit on the subject with this label; `None` is the main subject.
    pub(crate) async fn refund_subject(self, label: Option<&str>) -> Result<bool, BackendError> {
        let _counted = self.begin_correction();
        let (ticket, recount) = self.into_subject_refund(label)?;
        ticket.recount(recount).await
    }

    pub(crate) fn blocking_refund_subject(self, label: Option<&str>) -> Result<bool, BackendError> {
        let (ticket, recount) = self.into_subject_refund(label)?;
        ticket.blocking_recount(&recount)
    }

    fn into_subject_refund(self, label: Option<&str>) -> Result<(RecountTicket, Recount), BackendError> {
        // The ticket is taken only now: a label by mistake must not close the meters of the call.
        let policy = self.policy().ok_or_else(not_refundable)?.clone();
        let counting = policy.groups().iter().take(policy.counting_groups());
        let group = { counting }.find(|group| group.label.as_deref() == label);
        if let Some(group) = group {
            return Ok((*self.into_ticket()?, Recount::Refund(Some(group.label.clone()))));
        }
        if policy.has_trial_of(label) {
            return Ok((self.into_ticket()?.of_trials(label), Recount::REFUND));
        }
        let policy = policy.name();
        let subject = label.map_or("the main subject".to_owned(), |label| format!("`{label}`"));
        Err(BackendError::misuse(format!(
            "policy `{policy}` has no rule on {subject}; `refund` refunds all of its rules"
        )))
    }

    /// Lets `drain` wait for a correction that a caller awaits, until what this returns is dropped.
    pub(super) fn begin_correction(&self) -> Option<CountedTask> {
        self.ticket()?.begin_correction()
    }

    pub(super) fn into_ticket(self) -> Result<Box<RecountTicket>, BackendError> {
        let extras = self.into_extras().ok_or_else(not_refundable)?;
        let ticket = extras.ticket.or_else(|| extras.metering?.take_ticket().map(Box::new));
        ticket.ok_or_else(not_refundable)
    }

    /// Returns what the meters of the call share, which has the ticket from then on; `None` if it has no ticket.
    pub(super) fn metering(&mut self) -> Option<&Arc<Metering>> {
        let extras = self.extras_mut()?;
        if let Some(ticket) = extras.ticket.take() {
            extras.metering = Some(Arc::new(Metering::new(Some(*ticket))));
        }
        extras.metering.as_ref()
    }

    pub(super) fn take_metering(&mut self) -> Option<Arc<Metering>> {
        self.extras_mut()?.metering.take()
    }

    /// Adds the permits of rules in shadow, which a refund or a settlement of this permit recounts, too.
    pub(crate) fn with_trial_permits(mut self, permits: Vec<Self>) -> Self {
        let ticket = self.extras_mut().and_then(|extras| extras.ticket.as_mut());
        if let Some(ticket) = ticket {
            ticket.trials =
                permits.into_iter().filter_map(|permit| permit.into_ticket().ok()).map(|ticket| *ticket).collect();
        }
        self
    }

    /// Splits the permit into what can be refunded or settled, and what keeps the call running and its meters open.
    pub(crate) fn split(self) -> (Self, Self) {
        let decided_by = self.decided_by;
        let Some(extras) = self.into_extras() else {
            return (Self::plain(decided_by), Self::plain(decided_by));
        };
        let PermitExtras { report, warn_at, ticket, metering, pausing, lease } = extras;
        let (none, shared) = (Report::default(), metering.clone());
        let running =
            PermitExtras { report: none, warn_at: None, ticket: None, metering: shared, pausing: None, lease };
        let counted = PermitExtras { report, warn_at, ticket, metering, pausing, lease: None };
        (Self::with_extras(decided_by, counted), Self::with_extras(decided_by, running))
    }

    /// Returns what the call was counted as, if the permit can be refunded.
    pub(crate) fn charge(&self) -> Option<&Charge> {
        self.ticket().map(|ticket| &ticket.charge)
    }

    pub(super) fn ticket(&self) -> Option<&RecountTicket> {
        let extras = self.extras()?;
        let metered = || extras.metering.as_ref()?.ticket();
        extras.ticket.as_deref().or_else(metered)
    }

    /// Returns the policy that admitted the call, with the overrides that were in force, if the permit can be refunded.
    pub(crate) fn policy(&self) -> Option<&Policy> {
        self.charge().map(|charge| &charge.call.policy)
    }
}

#[cold]
fn not_pausable() -> BackendError {
    BackendError::misuse("the policy of this permit cannot be paused; make it pausable with `PolicyBuilder::pausable`")
}

pub(super) fn not_refundable() -> BackendError {
    BackendError::misuse("this permit cannot be refunded; ask for it with `Check::refundable`")
}

opaque_debug!(Permit, permit => { refundable: permit.policy().is_some() });
