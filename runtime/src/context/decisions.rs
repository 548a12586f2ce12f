//! The decisions that were made in a context, as far as a response reports them.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tallygate_rules::Role;

use crate::decision::{Charge, CostChange, Decision, Denial, Recount, RuleStatus, Wait};
use crate::policy::Policy;
use crate::subject::SubjectKey;

/// The most standings that are kept, so that a request which makes very many decisions has fields of bounded length.
const MOST: usize = 16;

/// Where the limits stand that decided the calls of a request. Clones share what is collected.
///
/// Of each rule of a policy it keeps the tightest standing: the denial with the longest wait, or else the least that remains.
/// It keeps the 16 tightest of all.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    standings: Arc<Mutex<Vec<LimitStatus>>>,
}

/// Where a rule or a ban stands.
#[derive(Clone, Debug)]
pub(crate) struct LimitStatus {
    pub(crate) policy: Policy,
    /// The subject, where a refund can raise what remains of it.
    refundable: Option<SubjectKey>,
    /// The rule; `None` for a ban.
    pub(crate) rule: Option<RuleStatus>,
    /// How long the calls wait that it denied; `None` if it denied none.
    pub(crate) denied: Option<Wait>,
}

impl Decisions {
    /// Returns an empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a decision of a policy. Only a decision with a [report](crate::Check::report) shows where rules stand that
    /// did not deny the call.
    pub fn add(&self, policy: &Policy, decision: &Decision) {
        match decision {
            Decision::Allowed(permit) => {
                for status in permit.report() {
                    let refundable =
                        permit.charge().and_then(|charge| charge.subject_of(status.position(), None).copied());
                    let rule = Some(status.clone());
                    self.insert(LimitStatus { policy: policy.clone(), refundable, rule, denied: None });
                }
            }
            Decision::Denied(denial) => self.add_denial(denial),
        }
    }

    /// Returns whether a call was denied.
    #[must_use]
    pub fn any_denied(&self) -> bool {
        self.lock().iter().any(|standing| standing.denied.is_some())
    }

    /// Returns whether a call was denied as a duplicate.
    pub(crate) fn any_duplicate(&self) -> bool {
        self.lock().iter().any(|known| known.denied.is_some() && known.role() == Some(Role::Duplicate))
    }

    /// Returns the longest time that a denied call waits; `None` if none was denied, or one is never admitted.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.longest_wait()?.retry_after()
    }

    /// The longest time that a denied call waits.
    pub(crate) fn longest_wait(&self) -> Option<Wait> {
        self.lock().iter().filter_map(|standing| standing.denied).max()
    }

    /// Counts a call as what it has used. Calls in shadow are not collected, and a denial stays one.
    pub(crate) fn recount(&self, charge: &Charge, recount: Recount) {
        let costs = CostChange { charged: charge.cost, used: recount.used };
        let of_policy = |standing: &&mut LimitStatus| standing.policy.name() == charge.policy.name();
        for standing in self.lock().iter_mut().filter(|_| !charge.is_shadow).filter(of_policy) {
            if let (Some(status), Some(subject)) = (&mut standing.rule, &standing.refundable)
                && charge.subject_of(status.position(), recount.part) == Some(subject)
            {
                *status = status.recounted(costs);
            }
        }
    }

    /// The tightest standing of each rule, those of one policy in the order of its rules.
    pub(crate) fn standings(&self) -> Vec<LimitStatus> {
        let mut tightest: Vec<LimitStatus> = Vec::new();
        for standing in self.lock().iter() {
            match tightest.iter_mut().find(|known| known.is_of(standing)) {
                Some(known) if standing.room() < known.room() => *known = standing.clone(),
                Some(_) => {}
                None => tightest.push(standing.clone()),
            }
        }
        tightest
    }

    fn add_denial(&self, denial: &Denial) {
        let wait = denial.retry_after().map_or(Wait::NEVER, Wait::of);
        let policy = denial.policy();
        let Some(rule) = denial.rule() else {
            self.insert(LimitStatus { policy: policy.clone(), refundable: None, rule: None, denied: Some(wait) });
            return;
        };
        if denial.report().is_empty() {
            let status = RuleStatus::used_up(rule.position(), rule.rule().clone());
            self.insert(LimitStatus {
                policy: policy.clone(),
                refundable: None,
                rule: Some(status),
                denied: Some(wait),
            });
        }
        let behind = behind_duplicate(denial, wait);
        for status in denial.report() {
            let denied = match behind {
                Some(_) if rule.position() == status.position() => Some(Wait::of(status.reset())),
                Some(behind) => (behind == status.position()).then_some(wait),
                None => (rule.position() == status.position()).then_some(wait),
            };
            self.insert(LimitStatus { policy: policy.clone(), refundable: None, rule: Some(status.clone()), denied });
        }
    }

    fn insert(&self, standing: LimitStatus) {
        let mut standings = self.lock();
        let is_same = |known: &LimitStatus| known.is_of(&standing) && known.refundable == standing.refundable;
        let of_same = standings.iter().position(is_same);
        if of_same.is_none() && standings.len() < MOST {
            standings.push(standing);
            return;
        }
        let replaced = match of_same {
            Some(same) => standings.get_mut(same),
            None => standings.iter_mut().max_by_key(|known| known.room()),
        };
        if let Some(known) = replaced.filter(|known| standing.room() < known.room()) {
            *known = standing;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LimitStatus>> {
        self.standings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the position of the rule that a denied call waits for, where a duplicate is reported before it.
fn behind_duplicate(denial: &Denial, wait: Wait) -> Option<usize> {
    let reported = denial.rule()?.position();
    let duplicate = denial.report().iter().find(|status| status.position() == reported)?;
    if duplicate.rule().role() != Role::Duplicate || wait <= Wait::of(duplicate.reset()) {
        return None;
    }
    // A rule never denies for longer than it counts, unless it does for ever.
    let may_deny = |status: &&RuleStatus| wait == Wait::NEVER || wait <= Wait::of(status.reset());
    let others = denial.report().iter().filter(|status| status.position() != reported).filter(may_deny);
    others.min_by_key(|status| status.remaining()).map(RuleStatus::position)
}

impl LimitStatus {
    /// Whether it is of the same rule as the other, or of the same ban.
    fn is_of(&self, other: &Self) -> bool {
        self.policy.name() == other.policy.name() && self.position() == other.position()
    }

    fn position(&self) -> Option<usize> {
        self.rule.as_ref().map(RuleStatus::position)
    }

    /// The greatest cost that would be admitted now.
    pub(crate) fn remaining(&self) -> u64 {
        self.rule.as_ref().map_or(0, RuleStatus::remaining)
    }

    /// The time in which no more than what remains may be used; `None` if nothing is used, or if it is not known.
    pub(crate) fn window(&self) -> Option<Wait> {
        let reset = self.rule.as_ref().map(RuleStatus::reset).filter(|reset| !reset.is_zero());
        self.denied.filter(|_| !self.waits_for_another()).or(reset.map(Wait::of))
    }

    /// Whether the call that it denied waits longer than for itself, for a rule that is not known: a duplicate is reported
    /// before it.
    pub(crate) fn waits_for_another(&self) -> bool {
        let per = self.rule.as_ref().filter(|status| status.rule().role() == Role::Duplicate);
        let per = per.and_then(|status| status.rule().per());
        per.is_some_and(|per| self.denied > Some(Wait::of(per)))
    }

    /// What the rule is for; `None` for a ban.
    pub(crate) fn role(&self) -> Option<Role> {
        self.rule.as_ref().map(|status| status.rule().role())
    }

    /// How much it allows: a denial is less than none, and less the longer it lasts; then comes what remains, and then for how
    /// long.
    pub(crate) fn room(&self) -> impl Ord + use<> {
        (Reverse(self.denied), self.remaining(), Reverse(self.window()))
    }
}
