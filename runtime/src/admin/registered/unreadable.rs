//! An entry of the list that cannot be read.

use std::fmt;

use crate::bounds::shown_word;
use crate::subject::{escape_name, percent_decode};

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
    pub(super) fn new(field: &str, reason: &str) -> Self {
        let (field, reason) = (shown_word(field).into_owned(), shown_word(reason).into_owned());
        // A name that is too long for a key is known in its short form only.
        let name = percent_decode(&field).unwrap_or_else(|| field.clone());
        Self { field, name, reason }
    }

    /// Whether this is the entry of the policy with that name.
    pub(super) fn is_of(&self, name: &str) -> bool {
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
