//! The subjects that rules count, and which of them are parts of others.

use crate::filter::Filter;
use crate::template::{FilteredValue, Template};

/// The subject that a rule counts.
///
/// Two subjects are equal if their labels are equal. If their keys are known, it is also known whether one subject is a
/// part of the other.
#[derive(Clone, Debug)]
pub struct CountedSubject<'a> {
    label: Option<&'a str>,
    /// `None` if the key of calls is not certain.
    key: Option<Key<'a>>,
}

#[derive(Clone, Debug)]
struct Key<'a> {
    text: &'a str,
    template: Template,
}

impl<'a> CountedSubject<'a> {
    /// Returns the subject of that label, or the main one, with an unknown key.
    #[must_use]
    pub const fn labelled(label: Option<&'a str>) -> Self {
        Self { label, key: None }
    }

    /// Returns the subject of that label, or the main one, with this key.
    #[must_use]
    pub fn with_key(label: Option<&'a str>, key: &'a str) -> Self {
        Self { label, key: Template::parse(key).ok().map(|template| Key { text: key, template }) }
    }

    /// Whether calls with one subject of this key always have one subject of the wider key, because the wider key shows
    /// no other values.
    pub(crate) fn is_within(&self, wider: &Self) -> bool {
        let is_known = || Some(self.key.as_ref()?.is_within(wider.key.as_ref()?));
        self == wider || is_known().unwrap_or(false)
    }

    /// Returns in words which calls are counted together.
    pub(crate) fn in_words(&self) -> String {
        match self.key.as_ref().filter(|key| key.template.values().next().is_some()) {
            Some(key) => format!("the calls of each `{}`", key.text),
            None => "all calls".to_owned(),
        }
    }
}

impl PartialEq for CountedSubject<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.label == other.label
    }
}

impl Key<'_> {
    fn is_within(&self, wider: &Self) -> bool {
        wider.template.values().all(|value| self.template.values().any(|own| determines(own, value)))
    }
}

/// Whether calls with one text of `value` always have one text of `other`.
fn determines(value: &FilteredValue, other: &FilteredValue) -> bool {
    let mut alternatives = value.alternatives().iter().zip(other.alternatives());
    value.name == other.name && alternatives.all(|(value, other)| alternative_determines(value, other))
}

fn alternative_determines(value: &FilteredValue, other: &FilteredValue) -> bool {
    // A method may return another value each time, and `*` stands for several values.
    let is_steady = !value.name.contains(['(', '*']);
    // `Debug` and `Display` may show different things.
    let is_debug = |value: &FilteredValue| value.filters.contains(&Filter::Debug);
    let mut filters = value.filters.iter().zip(&other.filters);
    let is_filtered = value.filters.len() <= other.filters.len()
        && filters.all(|(filter, other)| filter.determines(*other))
        && is_debug(value) == is_debug(other);
    is_steady && is_filtered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_within(narrower: &str, wider: &str) -> bool {
        let subject = |key| CountedSubject::with_key(Some(key), key);
        subject(narrower).is_within(&subject(wider))
    }

    #[test]
    fn a_key_that_shows_no_other_values_is_wider() {
        for (narrower, wider) in [
            ("{phone}", ""),
            ("sms:{phone}", "all"),
            ("{a}:{b}", "{a}"),
            ("{a}:{b}", "of {b}, {a}"),
            ("{user.id}", "u:{ user.id }"),
            ("{@ip}", "{@ip:subnet}"),
            ("{@ip:subnet}", "{@ip:subnet(24, 56)}"),
            ("{ip:subnet(24)}", "{ip:subnet(16):hash}"),
            ("{mail:trim}", "{mail:trim:lower:hash}"),
            ("{a:debug}", "{a:debug:hash}"),
            ("{@user|@ip}", "{@user:lower|@ip}"),
            ("all", "everybody"),
        ] {
            assert!(is_within(narrower, wider), "{narrower} {wider}");
        }
    }

    #[test]
    fn a_key_that_shows_another_value_or_another_form_of_it_is_not_wider() {
        for (narrower, wider) in [
            ("", "{phone}"),
            ("{a}", "{a}:{b}"),
            ("{a}", "{b}"),
            ("{a:lower}", "{a}"),
            ("{@user:lower|@ip}", "{@user|@ip}"),
            ("{@user|@ip}", "{@ip|@user}"),
            ("{@user|@ip}", "{@user}"),
            ("{a:lower}", "{a:trim}"),
            ("{ip:subnet(24)}", "{ip:subnet}"),
            ("{ip:subnet(24, 56)}", "{ip:subnet(16)}"),
            ("{ip:subnet}", "{ip}"),
            ("{a}", "{a:debug}"),
            ("{a:debug}", "{a}"),
            ("{user.plan()}:{a}", "{user.plan()}"),
            ("{*:debug}", "x{*:debug}"),
        ] {
            assert!(!is_within(narrower, wider), "{narrower} {wider}");
        }
    }

    #[test]
    fn without_a_key_a_subject_lies_in_itself_alone() {
        let [main, other] = [None, Some("all")].map(CountedSubject::labelled);
        assert!(main.is_within(&main) && !main.is_within(&other) && !other.is_within(&main));
        assert!(!main.is_within(&CountedSubject::with_key(Some("all"), "all")));
    }
}
