//! A file of policies beside those that the processes of a fleet have listed.

use tallygate_rules::did_you_mean;

use super::registered::Registered;
use super::registered_policy::RegisteredPolicy;
use crate::bounds::MOST_SUGGESTIONS;
use crate::config::{Policies, PolicyChange};
use crate::error::Mistake;

impl Registered {
    /// Returns the mistakes of a file beside this list, in the order of the file: names that no process has used within
    /// a week, entries that do not fit the policy of that name, counts in `[plans]` that are too great for a policy, and units there
    /// of which a policy counts one of a similar name.
    ///
    /// Policies for requests, with `match`, are the file's own and cannot be wrong in this way. An entry that this version
    /// cannot read is compared with nothing.
    #[must_use]
    pub fn mistakes_in(&self, policies: &Policies) -> Vec<Mistake> {
        let mut suggestions = MOST_SUGGESTIONS;
        let of_changes = policies.changes().iter().flat_map(|change| self.mistakes_of(change, &mut suggestions));
        let mut mistakes: Vec<_> = of_changes.collect();
        let listed: Vec<_> = self.policies().iter().filter_map(|listed| listed.policy().ok()).collect();
        mistakes.extend(policies.too_great_counts(listed.iter()));
        // A policy that cannot be read may count any unit.
        if self.unreadable().is_empty() {
            mistakes.extend(policies.misspelt_units(listed.iter()));
        }
        mistakes.sort_by_key(|mistake| (mistake.line(), mistake.column()));
        mistakes
    }

    fn mistakes_of(&self, change: &PolicyChange, suggestions: &mut usize) -> Vec<Mistake> {
        match self.find(&change.name).map(RegisteredPolicy::policy) {
            Some(Ok(policy)) => change.apply(&policy).err().unwrap_or_default(),
            None if self.find_unreadable(&change.name).is_none() => {
                let is_compared = *suggestions > 0;
                *suggestions = suggestions.saturating_sub(1);
                vec![self.unknown(change, is_compared)]
            }
            Some(Err(_)) | None => Vec::new(),
        }
    }

    fn unknown(&self, change: &PolicyChange, is_compared: bool) -> Mistake {
        let known = self.policies().iter().filter(|_| is_compared).map(RegisteredPolicy::name);
        let meant = did_you_mean(&change.name, known);
        Mistake::new(change.place, format!("no process has used a policy `{}` within a week{meant}", change.name))
    }
}
