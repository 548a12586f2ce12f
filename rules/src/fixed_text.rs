//! Fixed text of templates that was meant to show a value: `@ip`, `$phone`, `{{tenant}}`, `%s`.

mod name;
#[cfg(test)]
mod tests;

use self::name::{Name, NameForm};
use crate::template::{Piece, scan};

/// What a template is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateUse {
    /// The key of a subject.
    Key,
    /// The message of a rejection.
    Message,
    /// The name of a policy or of a rule, which shows no values.
    Name,
}

/// Values of the context that a web server or its application usually gives.
const CONTEXT: [&str; 5] = ["ip", "user", "method", "path", "route"];

/// Values that only a message can show.
const REJECTION: [&str; 4] = ["retry_after", "count", "per", "rule"];

/// Stands for all arguments in a key.
const ALL: &str = "*";

impl TemplateUse {
    /// Finds fixed text that looks like a value, given which names are arguments of the function. Says what is wrong, and the
    /// remedy.
    ///
    /// A template whose braces do not match has another mistake, which [`scan`] reports.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate_rules::TemplateUse;
    ///
    /// let mistake = TemplateUse::Key.check_fixed_text("sms:@ip", |_| false).unwrap_err();
    /// assert!(mistake.ends_with("write `{@ip}`"), "{mistake}");
    /// assert_eq!(TemplateUse::Key.check_fixed_text("sms:{@ip}", |_| false), Ok(()));
    /// ```
    ///
    /// # Errors
    ///
    /// The first such text.
    pub fn check_fixed_text(self, template: &str, is_argument: impl Fn(&str) -> bool) -> Result<(), String> {
        let pieces = scan(template).unwrap_or_default();
        let shows_values = pieces.iter().any(|piece| matches!(piece, Piece::Braced(_)));
        let check = Check { template, template_use: self, shows_values, is_argument: &is_argument };
        let mut follows_value = false;
        for piece in &pieces {
            match piece {
                Piece::Text(text) => check.text(text, follows_value)?,
                Piece::Braced(_) => follows_value = true,
            }
        }
        Ok(())
    }
}

/// The check of one template.
struct Check<'a> {
    template: &'a str,
    template_use: TemplateUse,
    shows_values: bool,
    is_argument: &'a dyn Fn(&str) -> bool,
}

impl Check<'_> {
    fn text(&self, text: &str, follows_value: bool) -> Result<(), String> {
        if let Some(verb) = name::format_verb(text) {
            return Err(match self.template_use {
                TemplateUse::Key => self.mistake(verb, "write what it stands for in braces, like `{@ip}`"),
                TemplateUse::Message => self.mistake(verb, "write what it stands for in braces, like `{@retry_after}`"),
                TemplateUse::Name => self.mistake(verb, "remove it"),
            });
        }
        if self.template_use == TemplateUse::Key && !self.shows_values && text.split([':', '/']).any(|part| part == ALL)
        {
            return Err(self.mistake(ALL, "write `{*}` for all arguments, or `all` for all calls together"));
        }
        let mut names = Name::all(text, follows_value);
        names.try_for_each(|name| self.meant(&name).map_or(Ok(()), |meant| Err(self.unbraced(&name, &meant))))
    }

    /// Returns the placeholder that a name was certainly meant to be, without its braces.
    fn meant(&self, name: &Name<'_>) -> Option<String> {
        let is_key = self.template_use == TemplateUse::Key;
        let argument = || (self.is_argument)(name.root()).then(|| name.path.to_owned());
        let context = || self.is_value(name.path).then(|| format!("@{}", name.path));
        let any_context = || is_key.then(|| format!("@{}", name.root()));
        match name.form {
            NameForm::EscapedContext => Some(format!("@{}", name.path)),
            NameForm::At => context().or_else(argument).or_else(any_context),
            NameForm::AtBehindValue => context().or_else(argument),
            NameForm::Escaped | NameForm::Dollar => argument().or_else(context),
            NameForm::Enclosed | NameForm::Sigil => argument().or_else(context).filter(|_| is_key),
            NameForm::Bare if !is_key || self.shows_values => None,
            // The name of a value may be part of a longer text: `user sign-up`.
            NameForm::Bare => argument().or_else(|| context().filter(|_| self.template.trim() == name.path)),
        }
    }

    fn is_value(&self, name: &str) -> bool {
        CONTEXT.contains(&name) || (self.template_use == TemplateUse::Message && REJECTION.contains(&name))
    }

    fn unbraced(&self, name: &Name<'_>, meant: &str) -> String {
        match name.form {
            _ if self.template_use == TemplateUse::Name => {
                self.mistake(name.written, &format!("put `{{{meant}}}` into a `key`, as a `name` shows no values"))
            }
            NameForm::Escaped | NameForm::EscapedContext => {
                let remedy = format!("write `{{{meant}}}`, or `{{{{{{{meant}}}}}}}` for the value in braces");
                self.mistake(&format!("{{{{{}}}}}", name.written), &remedy)
            }
            NameForm::Bare if !meant.starts_with('@') => {
                self.mistake(name.written, &format!("write `{{{meant}}}`, or a text that names no argument"))
            }
            _ => self.mistake(name.written, &format!("write `{{{meant}}}`")),
        }
    }

    fn mistake(&self, written: &str, remedy: &str) -> String {
        let without = if written.starts_with("{{") { "in double braces" } else { "without braces" };
        let effect = match self.template_use {
            TemplateUse::Key if self.shows_values => "so all its values share one tally",
            TemplateUse::Key => "so this `key` is the same for all calls",
            TemplateUse::Message => "so this `message` shows it as it stands",
            TemplateUse::Name => "so this `name` is the same for all calls",
        };
        format!("`{written}` {without} is fixed text, {effect}; {remedy}")
    }
}
