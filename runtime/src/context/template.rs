//! Keys that are read when the program runs: text beside values of the context.

use tallygate_rules::{FilteredValue, Template, TemplateUse, is_blank};

use crate::error::Error;
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
    /// It is blank, has a mistaken placeholder or one that is not of the context, two that nothing separates, or fixed text
    /// that was meant to show a value.
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

    /// Returns the names of the values that it shows.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.template.values().filter_map(FilteredValue::context_name)
    }

    /// Returns the subject of a call in the current context.
    pub(crate) fn subject<'a>(&self, secret: &'a Secret) -> Subject {
        let add = |builder: SubjectBuilder<'a>, value: &FilteredValue| {
            builder.context(value.context_name().unwrap_or_default())
        };
        SubjectBuilder::new(secret).template(&self.template, add).build()
    }
}

fn check_value(value: &FilteredValue) -> Result<(), String> {
    value.check_not_debug()?;
    value.context_name().map(drop).ok_or_else(|| {
        format!("`{{{}}}` is no value of the context; write the name of one behind an `@`, like `{{@ip}}`", value.text)
    })
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
