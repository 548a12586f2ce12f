//! The policies of a file, as they are applied to calls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::quality::RandomState;
use hashbrown::HashMap;

use crate::config::{Mistake, Policies, PolicyChange};
use crate::observe::log;
use crate::policy::Policy;

/// For how many policies of its name a change remembers what it made of them.
const MOST_MADE: usize = 16;

/// The policies of a file, as they are applied to calls.
pub(super) struct FromFile {
    #[cfg(feature = "web")]
    policies: Policies,
    changes: HashMap<String, Change, RandomState>,
}

struct Change {
    written: Arc<PolicyChange>,
    /// The latest policies that it was applied to, and what it made of them; `None` if it does not fit.
    made: Mutex<Vec<(Policy, Option<Policy>)>>,
    /// Whether it was reported that it does not fit.
    reported: AtomicBool,
}

impl FromFile {
    pub(super) fn new(policies: &Policies) -> Self {
        let change = |written: &Arc<PolicyChange>| {
            let written = Arc::clone(written);
            (written.name().to_owned(), Change { written, made: Mutex::default(), reported: AtomicBool::new(false) })
        };
        Self {
            #[cfg(feature = "web")]
            policies: policies.clone(),
            changes: policies.changes().iter().map(change).collect(),
        }
    }

    /// Returns the policies as they were read.
    #[cfg(feature = "web")]
    pub(super) fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Whether it changes any policy of the program.
    pub(super) fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Returns the policy as the file changes it, or `None` if it does not.
    pub(super) fn change(&self, policy: &Policy) -> Option<Policy> {
        self.changes.get(policy.name())?.apply(policy)
    }
}

impl Change {
    fn apply(&self, policy: &Policy) -> Option<Policy> {
        let mut known = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, made)) = known.iter().find(|(known, _)| known.is(policy)) {
            return made.clone();
        }
        let made = match self.written.apply(policy) {
            Ok(made) => Some(made),
            Err(mistakes) => {
                self.report(policy, &mistakes);
                None
            }
        };
        // Policies that are built for a single call do not pile up.
        if known.len() >= MOST_MADE {
            known.remove(0);
        }
        known.push((policy.clone(), made.clone()));
        made
    }

    /// Reports that it does not fit, once: the policy may be built for each call.
    fn report(&self, policy: &Policy, mistakes: &[Mistake]) {
        if !self.reported.swap(true, Ordering::Relaxed) {
            for mistake in mistakes {
                log::policy_not_changed(policy.name(), mistake);
            }
        }
    }
}
