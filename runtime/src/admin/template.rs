//! The template of a key, as it stands in the list of policies.

use tallygate_rules::{Filter, Piece, is_plain, scan};

use super::client_address;
use super::subjects::Placeholder;
use crate::error::Error;
use crate::subject::{Subject, SubjectBuilder, SubjectValue};

/// Stands before the digest of a subject that is shortened.
const DIGEST_MARK: char = '!';

/// The template of a key: text beside values.
pub(super) struct KeyTemplate {
    parts: Vec<Part>,
}

enum Part {
    Text(String),
    Value { name: String, filters: Vec<Filter> },
}

impl KeyTemplate {
    /// Reads the key of a policy.
    pub(super) fn read(policy: &str, key: &str) -> Result<Self, Error> {
        let part = |piece| match piece {
            Piece::Text(text) => Ok(Part::Text(text)),
            Piece::Braced(inner) => {
                Filter::split(inner).map(|(name, filters)| Part::Value { name: name.to_owned(), filters })
            }
        };
        let read = scan(key).and_then(|pieces| pieces.into_iter().map(part).collect::<Result<Vec<_>, _>>());
        let refused = |mistake| Error::new(format!("policy `{policy}`: its key `{key}` is no template: {mistake}"));
        Ok(Self { parts: read.map_err(refused)? })
    }

    /// The names of the values that it shows.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.values().map(|(name, _)| name)
    }

    /// The values that it shows, and whether it shows their digests.
    fn values(&self) -> impl Iterator<Item = (&str, bool)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Value { name, filters } => Some((name.as_str(), filters.contains(&Filter::Hash))),
        })
    }

    /// The first value that it shows as `Debug` writes it. A value of the context is text, of which the filter changes nothing.
    pub(super) fn debugged(&self) -> Option<&str> {
        self.parts.iter().find_map(|part| match part {
            Part::Value { name, filters } if filters.contains(&Filter::Debug) && !name.starts_with('@') => {
                Some(&**name)
            }
            _ => None,
        })
    }

    /// Returns the subject of a call with these values.
    pub(super) fn subject<'v>(&self, builder: SubjectBuilder<'_>, value: impl Fn(&str) -> &'v str) -> Subject {
        let built = self.parts.iter().fold(builder, |builder, part| match part {
            Part::Text(text) => builder.text(text),
            Part::Value { name, filters } => {
                filters.iter().copied().fold(builder.value(value(name)), SubjectValue::filtered).text("")
            }
        });
        built.build()
    }
}

impl KeyTemplate {
    /// Whether a subject may be one of the template: its text has the text of the template around values, which are escaped. Of
    /// one that is shortened, the start is compared.
    pub(super) fn fits(&self, subject: &str) -> bool {
        fits(&self.parts, subject)
    }

    /// Whether it shows text around its values, by which a whole subject differs from a value.
    pub(super) fn has_text(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Text(_)))
    }

    /// A subject of the template with the names of values in their places: `sms:PHONE`.
    pub(super) fn example(&self) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => escaped(text),
            Part::Value { name, .. } if name == client_address::NAME => "192.0.2.1".to_owned(),
            Part::Value { name, .. } => {
                name.chars().filter(|&c| c == '_' || c.is_alphanumeric()).collect::<String>().to_uppercase()
            }
        };
        self.parts.iter().map(part).collect()
    }
}

fn fits(parts: &[Part], rest: &str) -> bool {
    // What follows is the digest of the whole.
    if rest.starts_with(DIGEST_MARK) {
        return true;
    }
    match parts {
        [] => rest.is_empty(),
        [Part::Text(text), parts @ ..] => {
            let text = escaped(text);
            let is_cut =
                rest.split(DIGEST_MARK).next().is_some_and(|start| start.len() < rest.len() && text.starts_with(start));
            is_cut || rest.strip_prefix(&*text).is_some_and(|rest| fits(parts, rest))
        }
        [Part::Value { .. }, parts @ ..] => {
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
    for (name, is_hashed) in templates.into_iter().flat_map(KeyTemplate::values) {
        match found.iter_mut().find(|known| known.name() == name) {
            Some(known) => known.merge(is_hashed),
            None => found.push(Placeholder::new(name.to_owned(), is_hashed)),
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
