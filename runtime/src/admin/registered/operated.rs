//! The policies that the routes of a service know.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Registered, RegisteredPolicy};
use crate::error::BackendError;
use crate::limiter::Limiter;
use crate::policy::{Description, Policy};
use crate::system::unix;

impl Limiter {
    /// The policies that an operator of this limiter knows: the list in Redis, or those that this process knows, as a file
    /// changes them. Of several with one name, that is the one that was built last.
    pub(crate) async fn operated_policies(&self) -> Result<Registered, BackendError> {
        if self.store().policies().is_some() {
            return self.registered_policies().await;
        }
        let now = UNIX_EPOCH + unix();
        let known = Self::policies().map(|policy| {
            let changed = self.changed_by_file(&policy);
            (policy.name().to_owned(), RegisteredPolicy::of(changed.as_ref().unwrap_or(&policy), now))
        });
        let policies = known.collect::<BTreeMap<_, _>>().into_values().collect();
        Ok(Registered { policies, unreadable: Vec::new() })
    }
}

impl RegisteredPolicy {
    /// Describes a policy that this process knows, as it was at that time. Whether it is in shadow only calls know, unless the
    /// policy or a file says it.
    fn of(policy: &Policy, seen: SystemTime) -> Self {
        let described = Description::of(policy, policy.is_shadow());
        let rules = described.rules.iter().map(|(_, rule)| rule.clone()).collect();
        Self { described, rules, seen, says_shadow: policy.shadow().is_some() }
    }
}
