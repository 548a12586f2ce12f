//! The list of policies, as it is read.

use std::collections::BTreeMap;
use std::fmt;
use std::time::UNIX_EPOCH;

use super::registered_policy::RegisteredPolicy;
use crate::bounds::shown_word;
use crate::error::BackendError;
use crate::limiter::Limiter;
use crate::subject::{escape_name, percent_decode};
use crate::system::unix;

/// The list of policies in Redis: see [`Limiter::registered_policies`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    policies: Vec<RegisteredPolicy>,
    unreadable: Vec<Unreadable>,
}

impl Limiter {
    /// Reads the list of policies that processes with this server and prefix have written within the last week.
    ///
    /// A policy is listed a moment after its first decision by Redis. If several policies have one name, the list has
    /// the one that was registered last. See the [module](crate::admin).
    ///
    /// # Errors
    ///
    /// Redis does not answer within the deadline, or the limiter keeps its tallies in memory, where there is no list.
    pub async fn registered_policies(&self) -> Result<Registered, BackendError> {
        let list = self.store().policies().ok_or_else(in_memory)?;
        // While the list changes, the scan may return an entry twice.
        let stored: BTreeMap<_, _> = list.all().await?.into_iter().map(|stored| (stored.field, stored.text)).collect();
        let mut read = Registered { policies: Vec::new(), unreadable: Vec::new() };
        for (field, text) in stored {
            match RegisteredPolicy::read(&text) {
                Ok(policy) => read.policies.push(policy),
                Err(reason) => read.unreadable.push(Unreadable::new(&field, &reason)),
            }
        }
        read.policies.sort_by(|one, other| one.name().cmp(other.name()));
        Ok(read)
    }

    /// Returns the policies that operators see: the list in Redis, or those of this process, as a file changes them. If
    /// several policies have one name, it is the one that was built last.
    pub(crate) async fn operated_policies(&self) -> Result<Registered, BackendError> {
        if self.store().policies().is_some() {
            return self.registered_policies().await;
        }
        let now = UNIX_EPOCH + unix();
        let known = Self::policies().map(|policy| {
            let changed = self.changed_by_file(&policy);
            let plans = self.plans(&policy);
            (policy.name().to_owned(), RegisteredPolicy::of(changed.as_ref().unwrap_or(&policy), plans, now))
        });
        let policies = known.collect::<BTreeMap<_, _>>().into_values().collect();
        Ok(Registered { policies, unreadable: Vec::new() })
    }
}

/// Returns the error for a limiter in memory: a tool cannot see its tallies.
fn in_memory() -> BackendError {
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

    /// Returns the entry of the policy of that name, if this version cannot read it.
    #[must_use]
    pub fn find_unreadable(&self, name: &str) -> Option<&Unreadable> {
        self.unreadable.iter().find(|entry| entry.is_of(name))
    }
}

/// An entry of the list of policies that this version cannot read, such as one of a later version.
///
/// It displays as a sentence, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The name as it stands in keys.
    field: String,
    name: String,
    reason: String,
}

impl Unreadable {
    fn new(field: &str, reason: &str) -> Self {
        let (field, reason) = (shown_word(field).into_owned(), shown_word(reason).into_owned());
        // A name that is too long for a key is known in its short form only.
        let name = percent_decode(&field).unwrap_or_else(|| field.clone());
        Self { field, name, reason }
    }

    /// Whether this is the entry of the policy with that name.
    fn is_of(&self, name: &str) -> bool {
        self.field == *escape_name(name)
    }

    /// Returns the name of the policy. A name that is too long for keys is shortened as in keys.
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

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, reason, .. } = self;
        write!(f, "policy `{name}` is listed by another version: {reason}; use the `tallygate` of that version")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_of_the_policy_whose_name_it_has_in_keys() {
        let entry = |name: &str| Unreadable::new(&escape_name(name), "");
        let long = "crate::module::function".repeat(20);
        for name in ["sms.send", "a::b", "50 %", "短信", &long] {
            assert!(entry(name).is_of(name) && !entry(name).is_of("a"), "{name}");
        }
        assert_eq!(["a::b", "50 %", "短信"].map(|name| entry(name).name), ["a::b", "50 %", "短信"]);
        assert!(entry(&long).name().starts_with("crate%3A%3A") && entry(&long).name().len() < long.len());
    }
}
