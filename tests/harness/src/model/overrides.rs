//! Which override is in force for a call.

use std::collections::HashMap;

use tallygate::Rule;

use super::call::Call;

/// The rules that replace those on the main subject.
#[derive(Debug, Default)]
pub(super) struct Overrides {
    of_all: Option<Vec<Rule>>,
    of_subject: HashMap<usize, Vec<Rule>>,
}

impl Overrides {
    /// Overrides the rules for all calls or for those of one subject, or clears the override.
    pub(super) fn set(&mut self, subject: Option<usize>, rules: Option<Vec<Rule>>) {
        match (subject, rules) {
            (None, rules) => self.of_all = rules,
            (Some(subject), Some(rules)) => _ = self.of_subject.insert(subject, rules),
            (Some(subject), None) => _ = self.of_subject.remove(&subject),
        }
    }

    /// Returns the override for the main subject of a call, and the one for all calls.
    pub(super) fn of(&self, call: &Call) -> (Option<&Vec<Rule>>, Option<&Vec<Rule>>) {
        if call.plan.counts_the_main_subject() {
            (self.of_subject.get(&call.subjects[0]), self.of_all.as_ref())
        } else {
            (None, None)
        }
    }

    /// Returns the rules of the override in force. One for the main subject takes precedence.
    pub(super) fn in_force(&self, call: &Call) -> Option<&Vec<Rule>> {
        let (own, of_all) = self.of(call);
        own.or(of_all)
    }
}
