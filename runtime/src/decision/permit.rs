//! The proof that a call was admitted, which may be refunded.

use std::sync::Arc;

use super::charge::{Charge, RecountTicket};
use super::decided_by::DecidedBy;
use super::meter::Metering;
use super::pause::PauseTicket;
use super::report::{Report, RuleStatus};
use crate::call::{Lease, OnlyLease};
use crate::error::BackendError;
use crate::observe::opaque_debug;
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
    pausing: Option<PauseTicket>,
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

    /// Returns the permit of a call that was counted, which may be refunded, and may pause its subject.
    #[inline]
    pub(crate) fn counted(
        decided_by: DecidedBy,
        ticket: Option<Box<RecountTicket>>,
        pausing: Option<PauseTicket>,
    ) -> Self {
        let is_plain = ticket.is_none() && pausing.is_none();
        let parts = || Arc::new(PermitExtras { ticket, pausing, ..PermitExtras::default() });
        Self { extras: if is_plain { Extras::None } else { Extras::Parts(parts()) }, decided_by }
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
    pub(crate) fn with_pausing(self, pausing: PauseTicket) -> Self {
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

    /// Whether something ends with this permit: the lease of a call, its turn to be tried after a pause, or what its meters say.
    #[cfg(feature = "client")]
    pub(crate) fn is_of_running_call(&self) -> bool {
        match &self.extras {
            Extras::None => false,
            Extras::Lease(_) => true,
            Extras::Parts(parts) => parts.lease.is_some() || parts.metering.is_some() || self.is_probe(),
        }
    }

    pub(super) fn pausing(&self) -> Option<&PauseTicket> {
        self.extras()?.pausing.as_ref()
    }

    /// Lets `drain` wait for a correction that a caller awaits, until what this returns is dropped.
    pub(super) fn begin_correction(&self) -> Option<CountedTask> {
        self.ticket()?.begin_correction()
    }

    pub(super) fn into_ticket(self) -> Result<Box<RecountTicket>, BackendError> {
        let extras = self.into_extras().ok_or_else(not_refundable)?;
        let ticket = extras.ticket.or_else(|| extras.metering?.take_ticket());
        ticket.ok_or_else(not_refundable)
    }

    /// Returns what the meters of the call share, which has the ticket from then on; `None` if it has no ticket.
    pub(super) fn metering(&mut self) -> Option<&Arc<Metering>> {
        let extras = self.extras_mut()?;
        if let Some(ticket) = extras.ticket.take() {
            extras.metering = Some(Arc::new(Metering::new(Some(ticket))));
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

pub(super) fn not_refundable() -> BackendError {
    BackendError::misuse("this permit cannot be refunded; ask for it with `Check::refundable`")
}

opaque_debug!(Permit, permit => { refundable: permit.policy().is_some() });
