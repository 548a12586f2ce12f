//! The charge of an admitted call, and its recount: a refund removes it, and a settlement changes it to what the call
//! has used.

use std::collections::BTreeMap;
use std::future::Future;
use std::iter;
use std::mem;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tallygate_rules::MAX_EXACT;

use super::decided_by::DecidedBy;
use crate::algorithm::CostChange;
use crate::call::{Call, CallOptions, OwnedCall};
use crate::error::BackendError;
use crate::observe::log;
use crate::policy::RuleGroup;
use crate::subject::SubjectKey;
use crate::system::Handle;
use crate::system::home::Runtimes;
use crate::system::under_way::{CountedTask, TaskKind};

/// The charge of an admitted call: what it was counted as.
#[derive(Clone)]
pub(crate) struct Charge {
    pub(crate) call: OwnedCall,
    pub(crate) admitted: AdmittedAt,
    pub(crate) counted_by: DecidedBy,
}

impl Charge {
    #[inline]
    pub(crate) fn new(call: Call<'_>, admitted: AdmittedAt, counted_by: DecidedBy) -> Self {
        // A peek has counted nothing that could be removed.
        let nothing = CallOptions { cost: 0, ..call.options };
        let call = if call.options.peek { Call { costs: &[], options: nothing, ..call } } else { call };
        Self { call: OwnedCall::new(call), admitted, counted_by }
    }

    pub(crate) fn counted(&self) -> Call<'_> {
        self.call.as_call().counted()
    }

    /// Returns the subject that the rule at `position` counts.
    pub(crate) fn subject_of(&self, position: usize) -> Option<&SubjectKey> {
        self.call.subjects.get(self.call.policy.group_of(position)?)
    }

    /// Returns how the recount changes what the rule at `position` has counted; `None` if it does not.
    #[cfg(feature = "web")]
    pub(crate) fn change_of(&self, position: usize, recount: &Recount) -> Option<CostChange> {
        let index = self.call.policy.group_of(position)?;
        recount.change_of(self.call.as_call(), index)
    }
}

/// When a call was admitted, in microseconds since 1970 by the clock of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AdmittedAt {
    /// One time for all subjects.
    Once(u64),
    /// One time for each subject, in the order of the policy's groups: where several servers count them, or calls were
    /// taken ahead.
    Each(Box<[u64]>),
}

impl AdmittedAt {
    /// Returns the times of the subjects, or the one of all of them.
    #[cfg(feature = "redis")]
    pub(crate) fn times(&self) -> &[u64] {
        match self {
            Self::Once(us) => std::slice::from_ref(us),
            Self::Each(us) => us,
        }
    }

    /// Returns when the subject of the group with this index was charged.
    pub(crate) fn us(&self, group: usize) -> u64 {
        match self {
            Self::Once(us) => *us,
            Self::Each(us) => us.get(group).copied().unwrap_or_default(),
        }
    }
}

/// Resolves to whether the recount has changed anything.
pub(crate) type Recounting<'a> = Pin<Box<dyn Future<Output = Result<bool, BackendError>> + Send + 'a>>;

/// Recounts charges. A permit reaches its limiter by this.
pub(crate) trait Recounter: Send + Sync {
    /// Recounts a charge that this process has counted, and returns whether that has changed anything; `None` for any other.
    fn recount_here(&self, charge: &Charge, recount: &Recount) -> Option<bool>;

    /// Recounts a charge that this process has not counted.
    fn recount<'a>(&'a self, charge: &'a Charge, recount: &'a Recount) -> Recounting<'a>;

    /// Recounts for callers that cannot await.
    fn blocking_recount(self: Arc<Self>, charge: Charge, recount: Recount) -> Result<bool, BackendError>;

    /// Returns the runtimes for a recount in the background; `None` if the counts are in this process, where a recount
    /// blocks nobody.
    fn runtimes(&self, charge: &Charge) -> Option<&Arc<Runtimes>>;

    /// Lets `drain` wait for the meters of a call, until what this returns is dropped.
    fn begin_metering(&self) -> CountedTask;
}

/// The data for a refund or a settlement of a permit.
#[derive(Clone)]
pub(crate) struct RecountTicket {
    /// `None` if nobody has counted the call.
    recounter: Option<Arc<dyn Recounter>>,
    pub(crate) charge: Charge,
    /// The tickets of rules in shadow, which have counted the call, too.
    pub(super) trials: Vec<Self>,
}

impl RecountTicket {
    /// The ticket of a call that runs although nobody has counted it.
    pub(crate) fn of_nothing(call: Call<'_>) -> Self {
        let charge = Charge::new(call, AdmittedAt::Once(0), DecidedBy::Nobody);
        Self { recounter: None, charge, trials: Vec::new() }
    }

    #[inline]
    pub(crate) fn new(recounter: Arc<dyn Recounter>, charge: Charge) -> Self {
        Self { recounter: Some(recounter), charge, trials: Vec::new() }
    }

    /// Whether the call was counted, or rules in shadow have counted it.
    pub(super) fn is_counted(&self) -> bool {
        self.recounter.is_some() || !self.trials.is_empty()
    }

    /// `None` if nobody has counted the call.
    pub(super) fn begin_metering(&self) -> Option<CountedTask> {
        self.counting().find_map(|ticket| Some(ticket.recounter.as_ref()?.begin_metering()))
    }

    /// Lets `drain` wait for a recount in Redis that a caller awaits, until what this returns is dropped.
    pub(super) fn begin_correction(&self) -> Option<CountedTask> {
        Some(self.runtimes()?.background.begin(TaskKind::Correction))
    }

    /// Returns the runtimes for a recount in the background; `None` if all counts are in this process.
    fn runtimes(&self) -> Option<&Arc<Runtimes>> {
        self.counting().find_map(|ticket| ticket.recounter.as_ref()?.runtimes(&ticket.charge))
    }

    /// The ticket, and those of the rules in shadow.
    fn counting(&self) -> impl Iterator<Item = &Self> {
        iter::once(self).chain(&self.trials)
    }

    /// Recounts the call. The ticket is used up by that, and only lent: it is large to be moved.
    pub(crate) async fn recount(&mut self, recount: &Recount) -> Result<bool, BackendError> {
        let trials = self.take_trials(recount);
        let recounted = self.recount_own(recount).await;
        for trial in trials {
            // A rule in shadow changes no answer.
            let _ = trial.recount_own(recount).await;
        }
        recounted
    }

    async fn recount_own(&self, recount: &Recount) -> Result<bool, BackendError> {
        match &self.recounter {
            Some(recounter) => match recounter.recount_here(&self.charge, recount) {
                Some(has_changed) => Ok(has_changed),
                None => recounter.recount(&self.charge, recount).await,
            },
            None => Ok(false),
        }
    }

    pub(crate) fn blocking_recount(mut self, recount: &Recount) -> Result<bool, BackendError> {
        let trials = self.take_trials(recount);
        let recounted = self.blocking_recount_own(recount.clone());
        for trial in trials {
            let _ = trial.blocking_recount_own(recount.clone());
        }
        recounted
    }

    fn blocking_recount_own(self, recount: Recount) -> Result<bool, BackendError> {
        self.recounter.map_or(Ok(false), |recounter| recounter.blocking_recount(self.charge, recount))
    }

    /// Returns the ticket for only the rules in shadow on the subject with this label; `None` is the main subject.
    pub(super) fn of_trials(mut self, label: Option<&str>) -> Self {
        self.trials
            .retain(|trial| trial.charge.call.policy.groups().iter().any(|group| group.label.as_deref() == label));
        Self { recounter: None, ..self }
    }

    /// Takes the tickets of the rules in shadow on the subjects that are recounted.
    fn take_trials(&mut self, recount: &Recount) -> Vec<Self> {
        if self.trials.is_empty() {
            return Vec::new();
        }
        let is_meant =
            |trial: &Self| trial.charge.call.policy.groups().iter().any(|group| recount.used_of(group).is_some());
        mem::take(&mut self.trials).into_iter().filter(is_meant).collect()
    }

    /// Leaves less of a rule in the background. A failure is ignored: the next answer of the other side says it again.
    pub(super) fn leave_unawaited(mut self, remainder: Remainder) {
        match self.runtimes().map(Arc::clone) {
            Some(runtimes) => runtimes.spawn(TaskKind::Correction, async move {
                let _ = self.recount(&Recount::Leave(remainder)).await;
            }),
            None => drop(self.blocking_recount(&Recount::Leave(remainder))),
        }
    }

    /// Settles where the caller cannot await: in a task, if there is a runtime.
    pub(super) fn settle_unawaited(mut self, settlement: Recount) {
        let policy = self.charge.call.policy.clone();
        match (self.runtimes().map(Arc::clone), Handle::try_current()) {
            (Some(runtimes), Ok(_)) => runtimes.spawn(TaskKind::Correction, async move {
                report_settlement(policy.name(), self.recount(&settlement).await);
            }),
            _ => report_settlement(policy.name(), self.blocking_recount(&settlement)),
        }
    }
}

/// Reports a settlement to the log if it has failed: use beyond the cost is then never counted. Only the first of several
/// failures is a warning.
pub(crate) fn report_settlement(policy: &str, settled: Result<bool, BackendError>) {
    /// Whether the last settlement of this process has failed.
    static FAILING: AtomicBool = AtomicBool::new(false);
    let was_failing = FAILING.swap(settled.is_err(), Ordering::Relaxed);
    if let Err(error) = settled {
        log::not_settled(policy, &error, !was_failing);
    }
}

/// What a charge is changed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recount {
    /// The call is removed from the counts of one subject; `None` for those of all.
    Refund(Option<SubjectLabel>),
    /// The call has used this much of some units.
    Settle(Used),
    /// The other side has counted more than the rules here, so that less is left of one of them.
    Leave(Remainder),
}

/// The most that is left of one rule until the other side counts anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Remainder {
    /// The index of the rule's group.
    pub(crate) group: usize,
    /// The place of the rule in its group.
    pub(crate) place: usize,
    pub(crate) most: u64,
    /// For so many microseconds from now on.
    pub(crate) reset_us: u64,
}

impl Remainder {
    /// Returns what of it this process may use, if so many use it.
    pub(crate) fn part_of(self, processes: NonZeroU64) -> Self {
        Self { most: self.most / processes, ..self }
    }
}

/// The label of a subject; `None` for the main one.
pub(crate) type SubjectLabel = Option<Arc<str>>;

/// What a call has used of each unit; `None` names calls. Of units that are not named, it has used what it has cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used(BTreeMap<Option<Arc<str>>, u64>);

impl Used {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn of(&self, unit: Option<&Arc<str>>) -> Option<u64> {
        self.0.iter().find(|(named, _)| named.as_ref() == unit).map(|(_, used)| *used)
    }

    pub(super) fn add(&mut self, unit: Option<&Arc<str>>, used: u64) {
        let sum = self.0.entry(unit.cloned()).or_default();
        *sum = sum.saturating_add(used).min(MAX_EXACT);
    }

    pub(super) fn set(&mut self, unit: Option<Arc<str>>, used: u64) {
        self.0.insert(unit, used.min(MAX_EXACT));
    }

    /// Takes over what the other has of the units that it names.
    pub(super) fn replace(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

impl Recount {
    /// Removes the call from all counts.
    pub(crate) const REFUND: Self = Self::Refund(None);

    /// Returns what the call costs in this group from now on; `None` if that does not change.
    pub(crate) fn used_of(&self, group: &RuleGroup) -> Option<u64> {
        match self {
            Self::Refund(label) => label.as_ref().is_none_or(|label| *label == group.label).then_some(0),
            Self::Settle(used) => used.of(group.unit.as_ref()),
            // What more is counted is the use of others.
            Self::Leave(_) => None,
        }
    }

    /// Returns a settlement in two: of the units that are charged only now, and of the others, so that one of them may fail
    /// alone. `None` if there are not both.
    pub(crate) fn halves(&self, counted: Call<'_>) -> Option<[Self; 2]> {
        let Self::Settle(used) = self else { return None };
        let is_late = |unit: &Option<Arc<str>>| {
            let first = counted.groups().iter().position(|group| group.unit == *unit);
            first.is_some_and(|first| counted.cost_at(first) == 0)
        };
        let (late, paid): (BTreeMap<_, _>, BTreeMap<_, _>) =
            used.0.iter().map(|(unit, used)| (unit.clone(), *used)).partition(|(unit, _)| is_late(unit));
        (!late.is_empty() && !paid.is_empty()).then(|| [late, paid].map(|used| Self::Settle(Used(used))))
    }

    /// Returns how the cost changes on the subject with this index; `None` if it does not.
    pub(crate) fn change_of(&self, counted: Call<'_>, index: usize) -> Option<CostChange> {
        let used = self.used_of(counted.groups().get(index)?)?;
        Some(CostChange { charged: counted.cost_at(index), used })
    }

    /// Whether it may make room on the subject with this index.
    pub(crate) fn gives_back(&self, counted: Call<'_>, index: usize) -> bool {
        self.change_of(counted, index).is_some_and(|change| change.given_back() > 0)
    }

    /// Returns the smallest part of the counted call that has all changes; `None` if nothing changes.
    pub(crate) fn of<'a>(&self, counted: Call<'a>) -> Option<Call<'a>> {
        if let Self::Leave(remainder) = self {
            let index = remainder.group.checked_sub(counted.first_group())?;
            return (index < counted.subjects.len()).then(|| counted.part(index));
        }
        let changes = |group: &RuleGroup| self.used_of(group).is_some();
        let first = counted.groups().iter().position(changes)?;
        let last = counted.groups().iter().rposition(changes)?;
        Some(counted.parts_between(first, last))
    }
}
