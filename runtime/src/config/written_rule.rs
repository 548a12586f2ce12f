//! A rule as it is written in a file.

use tallygate_rules::{Field, Rule, RuleError};

use super::table::At;
use crate::error::Place;

/// A rule, and the places of its parts.
#[derive(Clone, Debug)]
pub(crate) struct WrittenRule {
    pub(super) rule: Rule,
    /// The key of the subject that it counts, if it is not that of the policy.
    pub(super) key: Option<At<String>>,
    pub(super) place: Place,
    /// The places of its arguments.
    pub(super) places: Vec<(&'static str, Place)>,
    /// Whether all of it could be read. Valid values take the places of the others.
    pub(super) is_complete: bool,
}

impl WrittenRule {
    /// Returns the place of a part, or of the whole rule.
    pub(super) fn place_of(&self, field: Field) -> Place {
        let argument = self.places.iter().find(|(name, _)| field.arguments().contains(name));
        argument.map_or(self.place, |(_, place)| *place)
    }

    /// Returns the label of the subject that it counts in a policy with that key: `None` for the main subject, even where
    /// its key is repeated.
    pub(super) fn label(&self, key: Option<&str>) -> Option<&str> {
        self.key.as_ref().map(|own| own.value.as_str()).filter(|own| Some(*own) != key)
    }
}

/// Returns the place of a mistake in rules; that of the list if it is in none of them.
pub(super) fn place_of(mistake: &RuleError, rules: &[&WrittenRule], list: Place) -> Place {
    let rule = mistake.position().and_then(|position| rules.get(position));
    rule.map_or(list, |rule| rule.place_of(mistake.field()))
}
