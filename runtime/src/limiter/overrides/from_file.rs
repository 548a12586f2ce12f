//! The policies of a file that is in force.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;

use super::active::ChangedPolicies;
use crate::config::{Policies, PolicyChange};
use crate::observe::log;
use crate::policy::{PlanCounts, Policy};
use crate::system::RandomState;

/// The policies of a file, as they change policies of the program.
pub(super) struct FromFile {
    /// The policies as they were read.
    pub(super) policies: Policies,
    changes: HashMap<String, (Arc<PolicyChange>, ChangedPolicies), RandomState>,
}

impl FromFile {
    pub(super) fn new(policies: &Policies) -> Self {
        let change =
            |change: &Arc<PolicyChange>| (change.name.clone(), (Arc::clone(change), ChangedPolicies::default()));
        Self { policies: policies.clone(), changes: policies.changes().iter().map(change).collect() }
    }

    pub(super) fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Whether it puts any policy of the program in shadow, or enforces it.
    pub(super) fn sets_shadow(&self) -> bool {
        self.changes.values().any(|(change, _)| change.sets_shadow())
    }

    /// Returns the counts of a policy's plans, by the names of the plans.
    pub(super) fn plans(&self, policy: &str) -> BTreeMap<String, PlanCounts> {
        self.policies.plans(policy).into_iter().map(|(plan, counts)| (plan.to_owned(), counts)).collect()
    }

    pub(super) fn plan(&self, policy: &str, plan: &str) -> Option<&PlanCounts> {
        let own = self.changes.get(policy).map(|(change, _)| &change.plans);
        own.map_or_else(|| self.policies.listed_plans().of(policy, plan), |plans| plans.of(policy, plan))
    }

    /// Returns the policy as the file changes it; `None` if it does not. A change that does not fit is reported once.
    pub(super) fn change(&self, policy: &Policy) -> Option<Policy> {
        let (change, changed) = self.changes.get(policy.name())?;
        changed.get(policy, None, || {
            let report = |mistakes: Vec<_>| {
                if changed.reported.is_first() {
                    for mistake in &mistakes {
                        log::policy_not_changed(policy.name(), mistake);
                    }
                }
            };
            change.apply(policy).map_err(report).ok()
        })
    }
}
