//! The policies of a file, as they change policies of the program.

use std::sync::Arc;

use hashbrown::HashMap;

use super::active::ChangedPolicies;
use crate::config::{Policies, PolicyChange};
use crate::observe::log;
use crate::policy::Policy;
use crate::system::RandomState;

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

    pub(super) fn plan_count(&self, policy: &str, plan: &str) -> Option<u64> {
        self.changes.get(policy)?.0.plans.count(plan)
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
