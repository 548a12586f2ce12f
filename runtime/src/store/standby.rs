//! Tallies in this process that decide while Redis is away.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tallygate_rules::Rule;

use super::answer::{LayeredAnswer, LeaseHolder, Outcome};
use super::decider::tally_to_ban;
use super::memory::Memory;
use crate::call::{Call, PlainCall};
use crate::clock::Clock;
use crate::decision::{Charge, DecidedBy, Decision, Recount, Wait};
use crate::error::BackendError;
use crate::policy::Policy;
use crate::sleepers::Sleepers;

/// The precision of the time of the last decision.
const RESOLUTION_US: u64 = 1_000;

/// Tallies in this process that count what it admits while Redis is away. They are kept when Redis is back, so that a
/// new outage does not start the limits anew.
pub(crate) struct Standby {
    clock: Clock,
    max_subjects: usize,
    /// The number of processes by which the counts of the rules are divided.
    processes: NonZeroU64,
    /// Empty before the first outage.
    memory: OnceLock<Memory>,
    /// The time of the last decision, by its clock.
    latest_us: AtomicU64,
    sleepers: Arc<Sleepers>,
}

impl Standby {
    pub(crate) fn new(clock: Clock, max_subjects: usize, processes: NonZeroU64, sleepers: Arc<Sleepers>) -> Self {
        Self { clock, max_subjects, processes, memory: OnceLock::new(), latest_us: AtomicU64::new(0), sleepers }
    }

    /// Decides a call by this process's part of the policy.
    ///
    /// # Errors
    ///
    /// There is no room for a new subject, or the call costs more than this process may admit alone.
    pub(crate) fn decide(self: &Arc<Self>, call: Call<'_>) -> Result<LayeredAnswer, BackendError> {
        let part = call.policy.part_of(self.processes);
        let call_of_part = Call { policy: &part, ..call };
        let answer = self.memory().decide(call_of_part)?;
        self.note_us(answer.at.us(0));
        self.check_part(call.policy, &part, |group| call.cost_at(group), answer.outcome)?;
        let answered = LayeredAnswer::with_lease_here(answer, call_of_part, || Arc::clone(self) as _);
        let part = (self.processes > NonZeroU64::MIN).then(|| part.into_owned());
        Ok(LayeredAnswer { decided_by: DecidedBy::Standby, part, ..answered })
    }

    /// Decides a plain call; `None` where [`Memory::outcome`] returns `None`.
    #[inline]
    pub(crate) fn decide_plain(&self, call: PlainCall<'_>) -> Option<Result<Decision, BackendError>> {
        let PlainCall { policy, subject, cost } = call;
        let part = policy.part_of(self.processes);
        let outcome = self.memory().outcome_at(&part, subject, cost, |now_us| self.note_us(now_us))?;
        let checked = self.check_part(policy, &part, |_| cost, outcome);
        Some(checked.map(|()| outcome.decision(call.by(&part), DecidedBy::Standby)))
    }

    /// Returns an error for a call that the part never admits, although the whole policy may.
    #[inline]
    fn check_part(
        &self,
        policy: &Policy,
        part: &Policy,
        cost: impl Fn(usize) -> u64 + Copy,
        outcome: Outcome,
    ) -> Result<(), BackendError> {
        if outcome.wait() != Wait::NEVER || too_costly(policy, cost).is_some() {
            return Ok(());
        }
        let Some(index) = too_costly(part, cost) else { return Ok(()) };
        let unit = policy.groups().get(index).and_then(|group| group.unit.as_deref());
        let of_unit = unit.map_or_else(String::new, |unit| format!(" in {unit}"));
        Err(BackendError::away(format!(
            "redis is away, and a call of cost {}{of_unit} is more than one of {} processes may admit meanwhile",
            cost(index),
            self.processes
        )))
    }

    /// The time of the last decision, to the millisecond.
    pub(crate) fn latest_us(&self) -> u64 {
        self.latest_us.load(Ordering::Relaxed)
    }

    #[inline]
    fn note_us(&self, now_us: u64) {
        // Written as rarely as possible, because all threads read it.
        if now_us >= self.latest_us().saturating_add(RESOLUTION_US) {
            self.latest_us.store(now_us, Ordering::Relaxed);
        }
    }

    /// See [`Memory::reset`].
    pub(crate) fn reset(&self, call: Call<'_>) -> Option<Duration> {
        self.memory.get()?.reset(call)
    }

    /// See [`Memory::ban`].
    pub(crate) fn ban(&self, call: Call<'_>, duration: Duration) -> Result<Option<Duration>, BackendError> {
        match self.memory.get() {
            // Without tallies, there is no ban to end.
            None if duration.is_zero() => tally_to_ban(call, duration).map(|_| None),
            _ => self.memory().ban(call, duration),
        }
    }

    /// See [`Decider::recount`](crate::store::Decider::recount). The standby has admitted the call.
    pub(crate) fn recount(&self, charge: &Charge, recount: &Recount) -> bool {
        let Some(memory) = self.memory.get() else { return false };
        let recount = match recount {
            Recount::Leave(remainder) => &Recount::Leave(remainder.part_of(self.processes)),
            other => other,
        };
        memory.recount(charge.counted(), recount, &charge.admitted)
    }

    fn memory(&self) -> &Memory {
        self.memory.get_or_init(|| Memory::new(self.clock.clone(), self.max_subjects))
    }
}

impl LeaseHolder for Standby {
    fn take_back(&self, leases: Call<'_>) {
        if let Some(memory) = self.memory.get() {
            memory.give_back_all(leases);
        }
        self.sleepers.wake_one(leases);
    }
}

/// The index of the first group with a rule that never admits a call of these costs.
fn too_costly(policy: &Policy, cost: impl Fn(usize) -> u64) -> Option<usize> {
    let fits = |rule: &Rule, cost: u64| rule.count() > 0 && cost <= rule.greatest_cost();
    let mut groups = policy.groups().iter().enumerate();
    groups.find(|(index, group)| !group.rules.iter().all(|rule| fits(rule, cost(*index)))).map(|(index, _)| index)
}
