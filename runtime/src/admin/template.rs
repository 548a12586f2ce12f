//! The template of a key, as it stands in the list of policies.

use tallygate_rules::{Filter, FilteredValue, Template, TemplatePart, is_plain};

use super::client_address;
use super::subjects::Placeholder;
use crate::error::Error;
use crate::subject::{Subject, SubjectBuilder, SubjectValue};

/// Stands before the digest of a subject that is shortened.
const DIGEST_MARK: char = '!';

/// The template of a key: text beside values.
pub(super) struct KeyTemplate {
    template: Template,
}

impl KeyTemplate {
    /// Reads the key of a policy.
    pub(super) fn read(policy: &str, key: &str) -> Result<Self, Error> {
        let refused = |mistake| Error::new(format!("policy `{policy}`: its key `{key}` is no template: {mistake}"));
        Template::parse(key).map(|template| Self { template }).map_err(refused)
    }

    /// The names of the values that it shows.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.template.values().map(|value| &*value.name)
    }

    /// The first value that it shows as `Debug` writes it. A value of the context is text, of which the filter changes nothing.
    pub(super) fn debugged(&self) -> Option<&str> {
        let mut values = self.template.values();
        let debugged = values.find(|value| value.filters.contains(&Filter::Debug) && !value.name.starts_with('@'));
        debugged.map(|value| &*value.name)
    }

    /// Returns the subject of a call with these values.
    pub(super) fn subject<'v>(&self, builder: SubjectBuilder<'_>, value: impl Fn(&str) -> &'v str) -> Subject {
        let built = self.template.parts().iter().fold(builder, |builder, part| match part {
            TemplatePart::Text(text) => builder.text(text),
            TemplatePart::Value(FilteredValue { name, filters, .. }) => {
                filters.iter().copied().fold(builder.value(value(name)), SubjectValue::filtered).text("")
            }
        });
        built.build()
    }

    /// Whether a subject may be one of the template: its text has the text of the template around values, which are escaped. Of
    /// one that is shortened, the start is compared.
    pub(super) fn fits(&self, subject: &str) -> bool {
        fits(self.template.parts(), subject)
    }

    /// Whether it shows text around its values, by which a whole subject differs from a value.
    pub(super) fn has_text(&self) -> bool {
        self.template.parts().iter().any(|part| matches!(part, TemplatePart::Text(_)))
    }

    /// A subject of the template with the names of values in their places: `sms:PHONE`.
    pub(super) fn example(&self) -> String {
        let part = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => escaped(text),
            TemplatePart::Value(value) if value.name == client_address::NAME => "192.0.2.1".to_owned(),
            TemplatePart::Value(value) => {
                value.name.chars().filter(|&c| c == '_' || c.is_alphanumeric()).collect::<String>().to_uppercase()
            }
        };
        self.template.parts().iter().map(part).collect()
    }
}

fn fits(parts: &[TemplatePart], rest: &str) -> bool {
    // What follows is the digest of the whole.
    if rest.starts_with(DIGEST_MARK) {
        return true;
    }
    match parts {
        [] => rest.is_empty(),
        [TemplatePart::Text(text), parts @ ..] => {
            let text = escaped(text);
            let is_cut =
                rest.split(DIGEST_MARK).next().is_some_and(|start| start.len() < rest.len() && text.starts_with(start));
            is_cut || rest.strip_prefix(&*text).is_some_and(|rest| fits(parts, rest))
        }
        [TemplatePart::Value(_), parts @ ..] => {
            let value = rest.bytes().take_while(|&byte| is_plain(byte) || byte == b'%').count();
            // The longest first. Between two values there is a byte that neither has.
            (0..=value).rev().any(|end| rest.get(end..).is_some_and(|rest| fits(parts, rest)))
        }
    }
}

/// Text of a template as it stands in subjects.
fn escaped(text: &str) -> String {
    let mut subject = Subject::everyone();
    subject.push_text(text);
    subject.to_string()
}

/// The values that these templates show, in the order in which they first appear.
pub(super) fn placeholders<'t>(templates: impl IntoIterator<Item = &'t KeyTemplate>) -> Vec<Placeholder> {
    let mut found: Vec<Placeholder> = Vec::new();
    for FilteredValue { name, filters, .. } in templates.into_iter().flat_map(|key| key.template.values()) {
        let is_hashed = filters.contains(&Filter::Hash);
        match found.iter_mut().find(|known| known.name() == name) {
            Some(known) => known.merge(is_hashed),
            None => found.push(Placeholder::new(name.clone(), is_hashed)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_fits_a_key_if_its_text_stands_around_escaped_values() {
        let fits = |key: &str, subject: &str| KeyTemplate::read("p", key).unwrap().fits(subject);
        for subject in ["sms:138", "sms:", "sms:zo%C3%AB", "sms:13!0123456789abcdef0123456789abcdef"] {
            assert!(fits("sms:{phone}", subject), "{subject}");
        }
        for subject in ["138", "sms:1:2", "not a subject", "mail:138", "sms", ""] {
            assert!(!fits("sms:{phone}", subject), "{subject}");
        }
        assert!(fits("{a}:{b}/é", "x:y/%C3%A9") && !fits("{a}:{b}", "x") && !fits("{a}:{b}", "x:y:z"));
        assert!(fits("all calls", "all calls") && !fits("all calls", "all") && fits("", ""));
    }

    #[test]
    fn an_example_has_the_names_of_the_values() {
        let example = |key: &str| KeyTemplate::read("p", key).unwrap().example();
        assert_eq!([example("sms:{phone:trim}"), example("{@ip}/{user.id}")], ["sms:PHONE", "192.0.2.1/USERID"]);
    }
}
