//! The policies that this process knows: they were built and are still in use.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Mutex;

use tallygate_rules::did_you_mean;

use super::shared::WeakShared;
use super::{Policy, PolicyInner};
use crate::lock::lock;
use crate::system::per_process;

/// The fewest entries for which a search for gone policies is worth its time.
const FEWEST_TO_PURGE: usize = 64;

per_process! {
    static REGISTRY: Mutex<Registry> = Mutex::new(Registry::new());
}

/// Makes the policy of an annotated function known. The program has one for each function, wherever it is linked in.
#[cfg(feature = "config")]
#[derive(Debug)]
pub struct Announced(pub fn());

#[cfg(feature = "config")]
inventory::collect!(Announced);

/// Makes the policies of all annotated functions known, also of functions that were not called yet.
#[cfg(feature = "config")]
pub(crate) fn know_annotated() {
    for Announced(make_known) in inventory::iter::<Announced> {
        make_known();
    }
}

pub(super) fn register(policy: &Policy) {
    lock(&REGISTRY).insert(policy);
}

/// Returns the last built policy with that name.
pub(crate) fn find(name: &str) -> Option<Policy> {
    lock(&REGISTRY).find(name)
}

/// Returns all policies by name, and then in the order in which they were built.
pub(crate) fn all() -> Vec<Policy> {
    lock(&REGISTRY).all()
}

/// Returns the message that this process knows no policy with that name. `hint` says when a policy is known, and what
/// else to do.
pub(crate) fn unknown(name: &str, known: &[Policy], hint: &str) -> String {
    let meant = did_you_mean(name, known.iter().map(Policy::name));
    format!("this process knows no policy `{name}`{meant} ({hint})")
}

/// Policies by name. The registry keeps none of them alive.
struct Registry {
    policies: BTreeMap<Cow<'static, str>, Vec<WeakShared<PolicyInner>>>,
    entries: usize,
    /// The number of entries at which the entries of gone policies are removed.
    purge_at: usize,
}

impl Registry {
    const fn new() -> Self {
        Self { policies: BTreeMap::new(), entries: 0, purge_at: FEWEST_TO_PURGE }
    }

    fn insert(&mut self, policy: &Policy) {
        if self.entries >= self.purge_at {
            self.purge();
        }
        self.policies.entry(policy.inner.name.clone()).or_default().push(policy.inner.downgrade());
        self.entries += 1;
    }

    fn find(&self, name: &str) -> Option<Policy> {
        self.policies.get(name)?.iter().rev().find_map(upgrade)
    }

    fn all(&self) -> Vec<Policy> {
        self.policies.values().flatten().filter_map(upgrade).collect()
    }

    /// Removes the entries of gone policies. It runs again when the number has doubled, so there are at most twice as
    /// many entries as policies in use, and the average cost of an insertion is constant.
    fn purge(&mut self) {
        self.policies.retain(|_, policies| {
            policies.retain(|policy| !policy.is_gone());
            !policies.is_empty()
        });
        self.entries = self.policies.values().map(Vec::len).sum();
        self.purge_at = (2 * self.entries).max(FEWEST_TO_PURGE);
    }
}

fn upgrade(policy: &WeakShared<PolicyInner>) -> Option<Policy> {
    policy.upgrade().map(|inner| Policy { inner })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::Rule;

    use super::*;

    fn built(name: impl Into<Cow<'static, str>>) -> Policy {
        Policy::builder(name).rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap()
    }

    /// Returns a policy that the process does not know, so other tests that list all policies do not hold it.
    fn policy(name: impl Into<Cow<'static, str>>, count: u64) -> Policy {
        built(name).with_counts([count])
    }

    fn counts(policies: &[Policy]) -> Vec<u64> {
        policies.iter().map(|policy| policy.rules()[0].count()).collect()
    }

    #[test]
    fn of_several_policies_of_one_name_the_one_built_last_is_found() {
        let mut registry = Registry::new();
        let (first, second, other) = (policy("sms", 1), policy("sms", 2), policy("mail", 3));
        for policy in [&first, &second, &other] {
            registry.insert(policy);
        }
        assert!(registry.find("sms").unwrap().is_clone_of(&second));
        assert_eq!(counts(&registry.all()), [3, 1, 2]);
        drop(second);
        assert!(registry.find("sms").unwrap().is_clone_of(&first));
        assert!(registry.find("sm").is_none());
    }

    #[test]
    fn policies_that_are_built_per_call_and_dropped_do_not_pile_up() {
        let mut registry = Registry::new();
        let kept: Vec<_> = (0..100).map(|number| policy(format!("kept {number}"), 1)).collect();
        for policy in &kept {
            registry.insert(policy);
        }
        for number in 0..5_000 {
            registry.insert(&policy("sms", 1));
            registry.insert(&policy(format!("tenant {number}"), 1));
        }
        assert!(registry.entries <= 200 && registry.policies.len() <= 200, "{}", registry.entries);
        assert_eq!(registry.all().len(), 100);
        drop(kept);
        assert!(registry.all().is_empty());
    }

    #[test]
    fn a_static_policy_is_one_with_its_clones_and_stays_known() {
        let rule = Rule::sliding_window(1, Duration::from_secs(60));
        let policy = Policy::builder("policy::registry::static").rule(rule).build_static().unwrap();
        assert!(policy.clone().is_clone_of(&policy) && !policy.is_clone_of(&policy.with_counts([1])));
        drop(policy);
        assert_eq!(counts(&find("policy::registry::static").into_iter().collect::<Vec<_>>()), [1]);
    }

    #[test]
    fn variants_with_other_counts_are_not_registered() {
        let policy = built("policy::registry::variants");
        let _variant = policy.with_counts([7]);
        assert!(find("policy::registry::variants").unwrap().is_clone_of(&policy));
    }
}
