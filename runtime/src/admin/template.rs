//! The template of a key, as it stands in the list of policies.

use tallygate_rules::{Filter, Piece, scan};

use super::placeholder::Placeholder;
use crate::error::Error;
use crate::subject::{Subject, SubjectBuilder, SubjectValue};

/// The template of a key: text beside values.
pub(super) struct Template {
    parts: Vec<Part>,
}

enum Part {
    Text(String),
    Value { name: String, filters: Vec<Filter> },
}

impl Template {
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

/// The values that these templates show, in the order in which they first appear.
pub(super) fn placeholders<'t>(templates: impl IntoIterator<Item = &'t Template>) -> Vec<Placeholder> {
    let mut found: Vec<Placeholder> = Vec::new();
    for (name, is_hashed) in templates.into_iter().flat_map(Template::values) {
        match found.iter_mut().find(|known| known.name() == name) {
            Some(known) => known.merge(is_hashed),
            None => found.push(Placeholder::new(name.to_owned(), is_hashed)),
        }
    }
    found
}
