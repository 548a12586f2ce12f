//! Keys that are read when the program runs: text beside values of the context.

use tallygate_rules::{Filter, Piece, TemplateUse, is_blank, is_separator, scan};

use crate::error::Error;
use crate::subject::filters::Secret;
use crate::subject::{Subject, SubjectBuilder, SubjectValue};

/// A key of text and values of the context, like `{@ip}/{@user:lower}`.
#[derive(Clone, Debug)]
pub(crate) struct ContextKey {
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Value { name: String, filters: Vec<Filter> },
}

impl ContextKey {
    /// Reads a key.
    ///
    /// # Errors
    ///
    /// It is blank, has a mistaken placeholder or one that is not of the context, two that nothing separates, or fixed text
    /// that was meant to show a value.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        Self::read(text).map_err(|mistake| Error::new(format!("`key`: {mistake}")))
    }

    fn read(text: &str) -> Result<Self, String> {
        let parts = scan(text)?.into_iter().map(Part::read).collect::<Result<Vec<_>, _>>()?;
        if is_blank(text) {
            return Err("it must not be empty; to count all calls together, write any text, like `all`".to_owned());
        }
        TemplateUse::Key.check_fixed_text(text, |_| false)?;
        check_separated(&parts)?;
        Ok(Self { parts })
    }

    /// Returns the names of the values that it shows.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Value { name, .. } => Some(name.as_str()),
        })
    }

    /// Returns the subject of a call in the current context.
    pub(crate) fn subject(&self, secret: &Secret) -> Subject {
        let builder = SubjectBuilder::new(secret);
        let built = self.parts.iter().fold(builder, |builder, part| match part {
            Part::Text(text) => builder.text(text),
            Part::Value { name, filters } => {
                filters.iter().copied().fold(builder.context(name), SubjectValue::filtered).text("")
            }
        });
        built.build()
    }
}

impl Part {
    fn read(piece: Piece<'_>) -> Result<Self, String> {
        let inner = match piece {
            Piece::Text(text) => return Ok(Self::Text(text)),
            Piece::Braced(inner) => inner,
        };
        let (value, filters) = Filter::split(inner)?;
        if filters.contains(&Filter::Debug) {
            return Err(format!("`{{{inner}}}`: a value of the context is text already; remove `debug`"));
        }
        let name = value.strip_prefix('@').filter(|name| is_name(name));
        let name = name.ok_or_else(|| {
            format!("`{{{inner}}}` is no value of the context; write the name of one behind an `@`, like `{{@ip}}`")
        })?;
        Ok(Self::Value { name: name.to_owned(), filters })
    }
}

/// Returns whether the text is the name of a value: letters, digits and `_`, and no digit first.
fn is_name(text: &str) -> bool {
    let wordy = text.chars().all(|character| character == '_' || character.is_alphanumeric());
    wordy && text.chars().next().is_some_and(|first| !first.is_numeric())
}

fn check_separated(parts: &[Part]) -> Result<(), String> {
    let mut previous = None;
    for part in parts {
        match part {
            Part::Text(text) if is_separator(text) => previous = None,
            Part::Text(_) => {}
            Part::Value { name, .. } => {
                if let Some(previous) = previous.replace(name) {
                    return Err(format!(
                        "different values of `{{@{previous}}}` and `{{@{name}}}` could make the same key; put `:` between \
                         them, which no value contains: `{{@{previous}}}:{{@{name}}}`"
                    ));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{Context, scope};

    fn mistake(text: &str) -> String {
        ContextKey::parse(text).unwrap_err().to_string()
    }

    #[tokio::test]
    async fn a_template_renders_as_a_subject_that_is_built_by_hand() {
        let secret = Secret::public();
        let template = ContextKey::parse("{@ip:subnet}/{@user:trim:lower} {{x}}").unwrap();
        assert_eq!(template.names().collect::<Vec<_>>(), ["ip", "user"]);
        let context = Context::new().with("ip", "[2001:db8::7]:80").with("user", " Zoë ");
        let built = SubjectBuilder::new(&secret).value("2001:db8::/64").text("/").value("zoë").text(" {x}").build();
        assert_eq!(scope(context, async { template.subject(&secret) }).await, built);
    }

    #[test]
    fn a_mistake_says_what_to_write_instead() {
        assert!(mistake("").starts_with("`key`: it must not be empty"));
        assert!(mistake("{@ip").starts_with("`key`: unmatched `{`"));
        assert!(mistake("{ip}").contains("`{ip}` is no value of the context; write the name of one behind an `@`"));
        assert!(mistake("{@}").contains("is no value of the context"));
        assert!(mistake("{@ip:subnt}").contains("has the unknown filter `subnt`; did you mean `subnet`?"));
        assert!(mistake("{@a}-{@b}").contains("put `:` between them"));
        assert!(mistake(" ").starts_with("`key`: it must not be empty"));
        for key in ["@ip", "ip", "login:$ip", "{@user}:{{ip}}", "{@user}:@ip"] {
            assert!(mistake(key).contains("; write `{@ip}`"), "{key}");
        }
    }
}
