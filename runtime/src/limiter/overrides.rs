//! Overrides: rules that change while the program runs.
//!
//! A limiter asks for the rules in force before the layers of `stack.rs` get a call. It shares overrides with other
//! processes by an [`OverrideStore`](crate::store::OverrideStore), from which they are read about once a second.

mod active;
mod checks;
#[cfg(feature = "config")]
mod from_file;
#[cfg(not(feature = "config"))]
mod no_file;
mod refresh;
mod shared;
mod target;
#[cfg(test)]
mod tests;
mod text;
#[cfg(test)]
#[cfg(tallygate_shuttle)]
mod threads;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

pub use self::active::Override;
use self::active::{ActiveOverride, OverrideTable};
pub(super) use self::checks::{Unknown, check};
#[cfg(feature = "config")]
use self::from_file::FromFile;
#[cfg(not(feature = "config"))]
use self::no_file::NoFile as FromFile;
use self::refresh::{ReadOrder, RefreshTimer};
use self::target::TargetKey;
pub(super) use self::target::{OverrideContent, OverrideTarget};
pub(super) use self::text::{WrittenOverride, content, read_written};
use crate::bounds::MOST_OVERRIDES;
use crate::clock::Clock;
#[cfg(feature = "config")]
use crate::config::Policies;
use crate::context;
use crate::error::Error;
use crate::observe::{GaugeChange, LineBudget, OverrideGauge, Quiet, log};
use crate::policy::{PlanCounts, Policy, registry};
use crate::store::OverrideStore;
use crate::subject::SubjectKey;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{RwLock, RwLockReadGuard, read, write};
use crate::system::RandomState;
use crate::system::home::Side;

/// Stands for no expiry.
const NEVER_US: u64 = u64::MAX;

/// The overrides that this process knows of.
pub(super) struct Overrides<S> {
    /// Whether there are overrides, or a file that changes policies.
    active: AtomicBool,
    /// Whether an override or the file sets whether a policy is in shadow.
    sets_shadow: AtomicBool,
    /// When the first override expires, in microseconds since 1970 by the clock of the store.
    next_expiry_us: AtomicU64,
    /// The store where processes share overrides; `None` in memory, where a limiter has its own.
    shared: Option<Arc<S>>,
    /// The clock of the limiter. Overrides that are not shared expire by it.
    clock: Clock,
    known: RwLock<KnownOverrides>,
    /// Notified when other rules may be in force.
    changes: Notify,
    timer: RefreshTimer,
    /// The refresh on the thread of the limiter, because a refresh on another runtime may stall, or end with it.
    timer_of_thread: RefreshTimer,
    read_order: ReadOrder,
    /// The budget of log lines: whoever may write to the server decides how many overrides change, expire or are
    /// mistaken.
    lines: LineBudget,
    hasher: RandomState,
}

#[derive(Default)]
struct KnownOverrides {
    table: OverrideTable,
    gauge: OverrideGauge,
    /// The policies of a file, to which overrides are applied.
    from_file: Option<FromFile>,
    /// The version that was read from Redis.
    version: Option<String>,
    /// The things that are stored beyond the bound, in words.
    excess: Option<String>,
    /// The hashes of overrides that could not be read. Each is reported once.
    unreadable: HashSet<u64>,
}

/// What decides a call in place of its policy.
pub(super) struct RulesInForce<'a> {
    pub(super) policy: Policy,
    /// The subject of each of its groups.
    pub(super) subjects: Cow<'a, [SubjectKey]>,
}

impl<S> Overrides<S> {
    pub(super) fn new(shared: Option<Arc<S>>, clock: Clock) -> Self {
        Self {
            active: AtomicBool::new(false),
            sets_shadow: AtomicBool::new(false),
            next_expiry_us: AtomicU64::new(NEVER_US),
            shared,
            clock,
            known: RwLock::default(),
            changes: Notify::new(),
            timer: RefreshTimer::default(),
            timer_of_thread: RefreshTimer::default(),
            read_order: ReadOrder::default(),
            lines: LineBudget::default(),
            hasher: RandomState::default(),
        }
    }

    /// Returns the timer of the refresh on `side`.
    fn timer(&self, side: Side) -> &RefreshTimer {
        match side {
            Side::Home => &self.timer,
            Side::Thread => &self.timer_of_thread,
        }
    }

    #[inline]
    pub(super) fn are_active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    fn any_expires(&self) -> bool {
        self.next_expiry_us.load(Ordering::Relaxed) != NEVER_US
    }

    /// Waits until other rules may be in force than at the time of this call.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changes.notified()
    }

    fn remove_expired_by(&self, now_us: u64) {
        if now_us < self.next_expiry_us.load(Ordering::Relaxed) {
            return;
        }
        let (expired, _shown): (Vec<_>, _) =
            self.change(|known| known.table.extract_if(|_, found| found.is_expired(now_us)).collect());
        for (target, _) in expired {
            self.lines.report(|| log::override_expired(target.key().policy));
        }
    }

    /// Returns the policy that replaces this one, with the rules in force on each of these subjects; `None` if its own
    /// rules are in force.
    fn changed_policy(&self, policy: &Policy, subjects: &[SubjectKey]) -> Option<Policy> {
        // A misfit is reported after the lock is released.
        let _quiet = Quiet::begin();
        let known = self.read();
        let find = |label, subject| known.find(policy, label, subject).filter(|found| found.has_rules());
        let of_policy = find(None, None).filter(|found| found.is_for_single_rules());
        let mut effective = known.changed_by_file(policy);
        for (index, label) in policy.first_places() {
            let Some(subject) = subjects.get(index) else { continue };
            // Only the most specific override is in force.
            let found = find(label, Some(subject)).or_else(|| find(label, None)).or(of_policy);
            let base = effective.as_ref().unwrap_or(policy);
            effective = found.and_then(|found| found.apply(base, label, &self.lines)).or(effective);
        }
        effective
    }

    /// Whether any override or file puts a policy in shadow, or enforces it.
    #[inline]
    pub(super) fn any_sets_shadow(&self) -> bool {
        self.sets_shadow.load(Ordering::Relaxed)
    }

    /// The policy as a file changes it, without overrides; `None` if no file changes it.
    pub(super) fn changed_by_file(&self, policy: &Policy) -> Option<Policy> {
        let _quiet = Quiet::begin();
        self.read().changed_by_file(policy)
    }

    /// Puts the policies of a file in force, in place of those of an earlier file.
    #[cfg(feature = "config")]
    pub(super) fn apply(&self, policies: &Policies) {
        let from_file = FromFile::new(policies);
        drop(self.change(|known| known.from_file = Some(from_file)));
    }

    #[cfg(feature = "config")]
    pub(super) fn plan_count(&self, policy: &str, plan: &str, unit: &str) -> Option<u64> {
        let _quiet = Quiet::begin();
        let known = self.read();
        let counts = known.from_file.as_ref()?.plan(policy, plan)?;
        counts.count_of(unit).or_else(|| match counts {
            PlanCounts::One(count) => registry::find(policy)
                .is_some_and(|policy| {
                    PlanCounts::unit_of_one(policy.rules().iter().filter(|rule| rule.is_varying())) == unit
                })
                .then_some(*count),
            PlanCounts::ByUnit(_) => None,
        })
    }

    /// Returns the counts of a policy's plans in the file in force, by the names of the plans.
    pub(super) fn plans(&self, policy: &Policy) -> BTreeMap<String, PlanCounts> {
        self.read().from_file.as_ref().map(|file| file.plans(policy.name())).unwrap_or_default()
    }

    #[cfg(feature = "config")]
    pub(super) fn applied(&self) -> Option<Policies> {
        self.read().from_file.as_ref().map(|from_file| from_file.policies.clone())
    }

    /// Adds an override, in place of an earlier one, and reports that to the log.
    fn put(&self, target: OverrideTarget, new: ActiveOverride) -> Result<(), Error> {
        let policy = target.key().policy.to_owned();
        let (put, _shown) = self.change(|known| {
            if known.table.len() >= MOST_OVERRIDES && !known.table.contains_key(&target) {
                return Err(too_many());
            }
            known.table.insert(target, new);
            Ok(())
        });
        put?;
        log::overridden(&policy, context::operator().as_deref());
        Ok(())
    }

    /// Removes an override, and reports that to the log. Returns whether there was one.
    fn remove(&self, target: &OverrideTarget) -> bool {
        let (is_removed, _shown) = self.change(|known| known.table.remove(target).is_some());
        if is_removed {
            log::overridden(target.key().policy, context::operator().as_deref());
        }
        is_removed
    }

    fn read(&self) -> RwLockReadGuard<'_, KnownOverrides> {
        read(&self.known)
    }

    /// Changes the known overrides. Also returns the change for the metrics, to report it without the lock.
    fn change<T>(&self, change: impl FnOnce(&mut KnownOverrides) -> T) -> (T, GaugeChange) {
        let mut known = write(&self.known);
        let changed = change(&mut known);
        let known = &mut *known;
        known.gauge.set(known.table.len());
        self.active.store(known.are_any(), Ordering::Relaxed);
        self.sets_shadow.store(known.any_sets_shadow(), Ordering::Relaxed);
        let next_expiry_us = known.table.values().filter_map(|found| found.expires_us).min();
        self.next_expiry_us.store(next_expiry_us.unwrap_or(NEVER_US), Ordering::Relaxed);
        self.changes.notify_waiters();
        (changed, known.gauge.change())
    }
}

impl<S: OverrideStore> Overrides<S> {
    /// The time by which overrides expire, in microseconds since 1970.
    fn now_us(&self) -> u64 {
        self.shared.as_ref().map_or_else(|| self.clock.now_us(), |shared| shared.override_time_us())
    }

    fn remove_expired(&self) {
        if self.any_expires() {
            self.remove_expired_by(self.now_us());
        }
    }

    /// When the first override expires, by the clock of the limiter.
    pub(super) fn next_end_us(&self) -> u64 {
        if !self.any_expires() {
            return NEVER_US;
        }
        let left_us = self.next_expiry_us.load(Ordering::Relaxed).saturating_sub(self.now_us());
        self.clock.now_us().saturating_add(left_us)
    }

    /// Returns the rules in force for a call of this policy on these subjects; `None` if the policy's own rules are.
    pub(super) fn in_force<'a>(&self, policy: &Policy, subjects: &'a [SubjectKey]) -> Option<RulesInForce<'a>> {
        self.remove_expired();
        let changed = self.changed_policy(policy, subjects)?;
        let subjects = subjects_of(&changed, policy, subjects);
        Some(RulesInForce { policy: changed, subjects })
    }

    /// Whether the policy is in shadow: as an override says, or else a file, or else the policy itself.
    pub(super) fn shadow_of(&self, policy: &Policy) -> Option<bool> {
        self.remove_expired();
        let known = self.read();
        let overridden = known.find(policy, None, None).and_then(|found| found.content.shadow);
        overridden.or_else(|| known.changed_by_file(policy).as_ref().unwrap_or(policy).shadow())
    }
}

/// The subjects for a policy in force, chosen from those of the policy's own form: an override may add or remove a
/// concurrency limit, which has a group of its own, or a rule in shadow.
fn subjects_of<'a>(policy: &Policy, own: &Policy, subjects: &'a [SubjectKey]) -> Cow<'a, [SubjectKey]> {
    let labels = |policy: &Policy| policy.subject_labels().map(Option::<&Arc<str>>::cloned).collect::<Vec<_>>();
    let (labels, own_labels) = (labels(policy), labels(own));
    if labels == own_labels && policy.groups().len() == own.groups().len() {
        return Cow::Borrowed(subjects);
    }
    let subject = |label| own_labels.iter().position(|own| own == label).and_then(|index| subjects.get(index));
    labels.iter().filter_map(subject).copied().collect()
}

impl KnownOverrides {
    fn find(&self, policy: &Policy, label: Option<&str>, subject: Option<&str>) -> Option<&ActiveOverride> {
        self.table.get(&TargetKey { policy: policy.escaped_name(), label, subject })
    }

    fn any_sets_shadow(&self) -> bool {
        self.from_file.as_ref().is_some_and(FromFile::sets_shadow)
            || self.table.values().any(ActiveOverride::sets_shadow)
    }

    /// Whether other rules than its own decide for any policy.
    fn are_any(&self) -> bool {
        self.from_file.as_ref().is_some_and(FromFile::has_changes) || !self.table.is_empty()
    }

    fn changed_by_file(&self, policy: &Policy) -> Option<Policy> {
        self.from_file.as_ref()?.change(policy)
    }
}

fn too_many() -> Error {
    Error::new(format!(
        "there are {MOST_OVERRIDES} overrides already; clear some, or give whole groups of subjects a policy of their own"
    ))
}
