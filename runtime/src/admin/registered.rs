//! The list of policies, as it is read.

use std::collections::BTreeMap;

use super::registered_policy::RegisteredPolicy;
use crate::error::BackendError;
use crate::limiter::Limiter;

/// The list of policies in Redis: see [`Limiter::registered_policies`].
#[derive(Clone, Debug)]
pub struct Registered {
    policies: Vec<RegisteredPolicy>,
    unreadable: Vec<Unreadable>,
}

impl Limiter {
    /// Reads the list of policies that processes with this server and prefix have written within the last week.
    ///
    /// A policy is listed from its first decision by Redis on, about a moment later. If several policies have one name,
    /// the list has the one that was registered last. See the [module](crate::admin).
    ///
    /// # Errors
    ///
    /// Redis does not answer within the deadline, or the limiter keeps its tallies in memory, where there is no list.
    pub async fn registered_policies(&self) -> Result<Registered, BackendError> {
        let (redis, prefix) = self.redis().ok_or_else(in_memory)?;
        // While the list changes, the scan may return an entry twice.
        let stored: BTreeMap<_, _> =
            redis.policies(prefix).all().await?.into_iter().map(|stored| (stored.field, stored.text)).collect();
        let mut read = Registered { policies: Vec::new(), unreadable: Vec::new() };
        for (field, text) in stored {
            match RegisteredPolicy::read(&text) {
                Ok(policy) => read.policies.push(policy),
                Err(reason) => read.unreadable.push(Unreadable { name: field, reason }),
            }
        }
        read.policies.sort_by(|one, other| one.name().cmp(other.name()));
        Ok(read)
    }
}

/// Returns the error for a limiter in memory, of which a tool can see nothing.
pub(super) fn in_memory() -> BackendError {
    BackendError::new(
        "the tallies of this limiter are in memory, which only their own process sees; connect to a server",
    )
}

impl Registered {
    /// Returns the policies, ordered by their names.
    #[must_use]
    pub fn policies(&self) -> &[RegisteredPolicy] {
        &self.policies
    }

    /// Returns the policy of that name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&RegisteredPolicy> {
        self.policies.iter().find(|policy| policy.name() == name)
    }

    /// Returns the entries that this version cannot read.
    #[must_use]
    pub fn unreadable(&self) -> &[Unreadable] {
        &self.unreadable
    }
}

/// An entry of the list of policies that this version cannot read, such as one of a later version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    name: String,
    reason: String,
}

impl Unreadable {
    /// Returns the name of the policy, as it stands in keys.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns why it cannot be read.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
