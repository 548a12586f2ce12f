//! The overrides that this process knows of.

use std::collections::HashSet;
use std::sync::PoisonError;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::active::{ActiveOverride, OverrideTable};
#[cfg(feature = "config")]
use super::from_file::FromFile;
use super::refresh::{ReadOrder, RefreshTimer};
use super::target::{OverrideTarget, TargetKey};
use crate::bounds::MOST_OVERRIDES;
#[cfg(feature = "config")]
use crate::config::Policies;
use crate::context;
use crate::error::Error;
use crate::observe::log::LineBudget;
use crate::observe::{GaugeChange, OverrideGauge, Quiet, log, opaque_debug};
use crate::policy::Policy;
use crate::subject::SubjectKey;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{RwLock, RwLockReadGuard};
use crate::system::RandomState;
use crate::system::home::Side;

/// Stands for no expiry.
const NEVER_US: u64 = u64::MAX;

/// The overrides that this process knows of.
pub(crate) struct Overrides {
    /// Whether there are overrides, or a file that changes policies.
    active: AtomicBool,
    /// Whether an override or the file sets whether a policy is in shadow.
    sets_shadow: AtomicBool,
    /// When the first override expires, in microseconds since 1970 by the clock of the store.
    next_expiry_us: AtomicU64,
    known: RwLock<KnownOverrides>,
    /// Notified when other rules may be in force.
    changes: Notify,
    timer: RefreshTimer,
    /// The refresh on the thread of the limiter, because a refresh on another runtime may stall, or end with it.
    timer_of_thread: RefreshTimer,
    pub(super) read_order: ReadOrder,
    /// The budget of log lines: whoever may write to the server decides how many overrides change, expire or are
    /// mistaken.
    pub(super) lines: LineBudget,
    pub(super) hasher: RandomState,
}

#[derive(Default)]
pub(super) struct KnownOverrides {
    pub(super) table: OverrideTable,
    gauge: OverrideGauge,
    /// The policies of a file, to which overrides are applied.
    #[cfg(feature = "config")]
    pub(super) from_file: Option<FromFile>,
    /// The version that was read from Redis.
    pub(super) version: Option<String>,
    /// The things that are stored beyond the bound, in words.
    pub(super) excess: Option<String>,
    /// The hashes of overrides that could not be read. Each is reported once.
    pub(super) unreadable: HashSet<u64>,
}

impl Default for Overrides {
    fn default() -> Self {
        Self {
            active: AtomicBool::new(false),
            sets_shadow: AtomicBool::new(false),
            next_expiry_us: AtomicU64::new(NEVER_US),
            known: RwLock::default(),
            changes: Notify::new(),
            timer: RefreshTimer::default(),
            timer_of_thread: RefreshTimer::default(),
            read_order: ReadOrder::default(),
            lines: LineBudget::default(),
            hasher: RandomState::default(),
        }
    }
}

impl Overrides {
    /// Returns the timer of the refresh on `side`.
    pub(super) fn timer(&self, side: Side) -> &RefreshTimer {
        match side {
            Side::Home => &self.timer,
            Side::Thread => &self.timer_of_thread,
        }
    }

    #[inline]
    pub(in crate::limiter) fn are_active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    pub(in crate::limiter) fn any_expires(&self) -> bool {
        self.next_expiry_us.load(Ordering::Relaxed) != NEVER_US
    }

    /// When the first override expires, by the clock of the store.
    pub(in crate::limiter) fn next_expiry_us(&self) -> u64 {
        self.next_expiry_us.load(Ordering::Relaxed)
    }

    /// Waits until other rules may be in force than at the time of this call.
    pub(in crate::limiter) fn changed(&self) -> Notified<'_> {
        self.changes.notified()
    }

    pub(in crate::limiter) fn remove_expired(&self, now_us: u64) {
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
    pub(in crate::limiter) fn in_force(&self, policy: &Policy, subjects: &[SubjectKey]) -> Option<Policy> {
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
    pub(in crate::limiter) fn any_sets_shadow(&self) -> bool {
        self.sets_shadow.load(Ordering::Relaxed)
    }

    /// Whether the policy is in shadow: as an override says, or else a file, or else the policy itself.
    pub(in crate::limiter) fn shadow_of(&self, policy: &Policy) -> Option<bool> {
        let known = self.read();
        let overridden = known.find(policy, None, None).and_then(|found| found.content.shadow);
        overridden.or_else(|| known.changed_by_file(policy).as_ref().unwrap_or(policy).shadow())
    }

    /// The policy as a file changes it, without overrides; `None` if no file changes it.
    pub(in crate::limiter) fn changed_by_file(&self, policy: &Policy) -> Option<Policy> {
        let _quiet = Quiet::begin();
        self.read().changed_by_file(policy)
    }

    /// Puts the policies of a file in force, in place of those of an earlier file.
    #[cfg(feature = "config")]
    pub(in crate::limiter) fn apply(&self, policies: &Policies) {
        let from_file = FromFile::new(policies);
        drop(self.change(|known| known.from_file = Some(from_file)));
    }

    #[cfg(feature = "config")]
    pub(in crate::limiter) fn plan_count(&self, policy: &str, plan: &str) -> Option<u64> {
        self.read().from_file.as_ref()?.plan_count(policy, plan)
    }

    #[cfg(feature = "config")]
    pub(in crate::limiter) fn applied(&self) -> Option<Policies> {
        self.read().from_file.as_ref().map(|from_file| from_file.policies.clone())
    }

    /// Adds an override, in place of an earlier one, and reports that to the log.
    pub(super) fn put(&self, target: OverrideTarget, new: ActiveOverride) -> Result<(), Error> {
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
    pub(super) fn remove(&self, target: &OverrideTarget) -> bool {
        let (is_removed, _shown) = self.change(|known| known.table.remove(target).is_some());
        if is_removed {
            log::overridden(target.key().policy, context::operator().as_deref());
        }
        is_removed
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, KnownOverrides> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the known overrides. Also returns the change for the metrics, to report it without the lock.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut KnownOverrides) -> T) -> (T, GaugeChange) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
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

impl KnownOverrides {
    fn find(&self, policy: &Policy, label: Option<&str>, subject: Option<&str>) -> Option<&ActiveOverride> {
        self.table.get(&TargetKey { policy: policy.escaped_name(), label, subject })
    }

    fn any_sets_shadow(&self) -> bool {
        #[cfg(feature = "config")]
        if self.from_file.as_ref().is_some_and(FromFile::sets_shadow) {
            return true;
        }
        self.table.values().any(ActiveOverride::sets_shadow)
    }

    /// Whether other rules than its own decide for any policy.
    fn are_any(&self) -> bool {
        #[cfg(feature = "config")]
        if self.from_file.as_ref().is_some_and(FromFile::has_changes) {
            return true;
        }
        !self.table.is_empty()
    }

    #[cfg(feature = "config")]
    fn changed_by_file(&self, policy: &Policy) -> Option<Policy> {
        self.from_file.as_ref()?.change(policy)
    }

    #[cfg(not(feature = "config"))]
    #[allow(clippy::unused_self, reason = "there is no file")]
    fn changed_by_file(&self, _: &Policy) -> Option<Policy> {
        None
    }
}

// Leaves out the subjects, which may be personal.
opaque_debug!(Overrides, known => { overrides: known.read().table.len() });

pub(super) fn too_many() -> Error {
    Error::new(format!(
        "there are {MOST_OVERRIDES} overrides already; clear some, or give whole groups of subjects a policy of their own"
    ))
}
