//! Keys that are read when the program runs. They consist of text and values of the context.

use tallygate_rules::{FilteredValue, Template, TemplateUse, is_blank};

use super::placeholder::missing;
use super::scope;
use crate::error::{BackendError, Error};
use crate::subject::filters::Secret;
use crate::subject::{Subject, SubjectBuilder};

/// A key of text and values of the context, like `{@ip}/{@user:lower}`.
#[derive(Clone, Debug)]
pub(crate) struct ContextKey {
    template: Template,
}

impl ContextKey {
    /// Reads a key.
    ///
    /// # Errors
    ///
    /// The text is blank, has a wrong placeholder or one that is not of the context, has two placeholders that nothing
    /// separates, or has fixed text that was meant to show a value.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        Self::read(text).map_err(|mistake| Error::new(format!("`key`: {mistake}")))
    }

    fn read(text: &str) -> Result<Self, String> {
        let template = Template::parse(text)?;
        template.values().try_for_each(check_value)?;
        if is_blank(text) {
            return Err("it must not be empty; to count all calls together, write any text, like `all`".to_owned());
        }
        TemplateUse::Key.check_fixed_text(text, |_| false)?;
        template.check_separated()?;
        Ok(Self { template })
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.template.values().flat_map(FilteredValue::alternatives).filter_map(FilteredValue::context_name)
    }

    /// Returns the subject of a call whose values these are; `None` if it lacks one.
    pub(crate) fn subject_of(&self, secret: &Secret, find: impl Fn(&str) -> Option<String>) -> Option<Subject> {
        let subject = SubjectBuilder::new(secret).template(&self.template, |value| read(value, &find)).build();
        subject.mistake().is_none().then_some(subject)
    }

    /// Returns the subject of a call in the current context.
    pub(crate) fn subject(&self, secret: &Secret) -> Subject {
        let find = |name: &str| scope::read(name, str::to_owned);
        SubjectBuilder::new(secret).template(&self.template, |value| read(value, find)).build()
    }
}

/// The value of a field that a request does not have. No client can send this byte, so no field has this value.
const ABSENT: &str = "\0";

/// Returns the value to show: the first alternative that is not missing and not empty.
fn read(
    value: &FilteredValue,
    find: impl Fn(&str) -> Option<String>,
) -> Result<(&FilteredValue, String), BackendError> {
    let is_shown = |text: &String| !value.has_alternatives() || !text.is_empty();
    let read = |value: &FilteredValue| find(value.context_name()?).filter(is_shown);
    let found = value.alternatives().iter().find_map(|shown| Some((shown, read(shown)?)));
    // A client may leave out any field.
    let absent = || value.alternatives().last().filter(|last| is_field(last)).map(|last| (last, ABSENT.to_owned()));
    found.or_else(absent).ok_or_else(|| missing(value.name.trim_start_matches('@')))
}

/// Whether the value is a field of the request: `{@header_x_api_key}`.
pub(super) fn is_field(value: &FilteredValue) -> bool {
    value.context_name().is_some_and(|name| name.starts_with("header_"))
}

pub(super) fn check_value(value: &FilteredValue) -> Result<(), String> {
    value.check_not_debug()?;
    if value.has_alternatives() {
        return Ok(());
    }
    let unnamed = || format!("`{{{}}}` is no value of the context; {}", value.text, value.context_remedy("{@ip}"));
    value.context_name().map(drop).ok_or_else(unnamed)
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

    #[tokio::test]
    async fn the_first_alternative_that_is_there_is_rendered_behind_its_name() {
        let secret = Secret::public();
        let template = ContextKey::parse("{@user:lower|@ip:subnet} x").unwrap();
        assert_eq!(template.names().collect::<Vec<_>>(), ["user", "ip"]);
        let rendered = async |context: Context| scope(context, async { template.subject(&secret) }).await.to_string();
        let ip = Context::new().with("ip", "192.0.2.1");
        assert_eq!(rendered(ip.clone()).await, "ip:192.0.2.1 x");
        assert_eq!(rendered(ip.clone().with("user", "")).await, "ip:192.0.2.1 x");
        assert_eq!(rendered(ip.with("user", "A:b")).await, "user:a%3Ab x");
        let missing = scope(Context::new(), async { template.subject(&secret) }).await;
        assert!(missing.mistake().unwrap().to_string().starts_with("`{@user|@ip}` "));
    }

    #[test]
    fn a_mistake_says_what_to_write_instead() {
        assert!(mistake("").starts_with("`key`: it must not be empty"));
        assert!(mistake("{@ip").starts_with("`key`: unmatched `{`"));
        assert!(mistake("{ip}").contains("`{ip}` is no value of the context; write the name of one behind an `@`"));
        assert!(mistake("{@user|ip}").contains("the alternative `ip` is no value of the context"));
        assert!(mistake("{@}").contains("is no value of the context"));
        assert!(mistake("{@header_X-Key}").ends_with("with letters, digits and `_`, like `{@header_x_api_key}`"));
        assert!(mistake("{@ip:subnt}").contains("has the unknown filter `subnt`; did you mean `subnet`?"));
        assert!(mistake("{@a}-{@b}").contains("put `:` between them"));
        assert!(mistake(" ").starts_with("`key`: it must not be empty"));
        for key in ["@ip", "ip", "login:$ip", "{@user}:{{ip}}", "{@user}:@ip"] {
            assert!(mistake(key).contains("; write `{@ip}`"), "{key}");
        }
    }
}
