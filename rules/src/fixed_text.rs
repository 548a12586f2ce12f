//! Finds fixed text of templates that was meant to show a value: `@ip`, `$phone`, `{{tenant}}`, `%s`.

#[cfg(test)]
mod tests;

use crate::template::{Piece, scan};
use crate::template_use::TemplateUse;

/// Values of the context that a web server or its application usually gives.
const CONTEXT: [&str; 5] = ["ip", "user", "method", "path", "route"];

const ALL: &str = "*";

impl TemplateUse {
    /// Checks that no fixed text looks like a value. `is_argument` says which names are arguments of the function.
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
    /// Returns an error about the first such text, with the remedy.
    pub fn check_fixed_text(self, template: &str, is_argument: impl Fn(&str) -> bool) -> Result<(), String> {
        let pieces = scan(template).unwrap_or_default();
        let shows_values = pieces.iter().any(|piece| matches!(piece, Piece::Braced(_)));
        let check = TextCheck { template, template_use: self, shows_values, is_argument: &is_argument };
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

struct TextCheck<'a> {
    template: &'a str,
    template_use: TemplateUse,
    shows_values: bool,
    is_argument: &'a dyn Fn(&str) -> bool,
}

impl TextCheck<'_> {
    fn text(&self, text: &str, follows_value: bool) -> Result<(), String> {
        if let Some(verb) = format_verb(text) {
            return Err(match self.template_use {
                TemplateUse::Key => self.mistake(verb, "write what it stands for in braces, like `{@ip}`"),
                TemplateUse::Message | TemplateUse::BanMessage => {
                    self.mistake(verb, "write what it stands for in braces, like `{@retry_after}`")
                }
                TemplateUse::Name => self.mistake(verb, "remove it"),
            });
        }
        if self.template_use == TemplateUse::Key && !self.shows_values && text.split([':', '/']).any(|part| part == ALL)
        {
            return Err(self.mistake(ALL, "write `{*}` for all arguments, or `all` for all calls together"));
        }
        let mut names = Name::find_all(text, follows_value);
        names.try_for_each(|name| self.meant(&name).map_or(Ok(()), |meant| Err(self.unbraced(&name, &meant))))
    }

    /// Returns the placeholder that the name certainly stands for, without its braces.
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
            // A longer text may contain the name of a value by chance: `user sign-up`.
            NameForm::Bare => argument().or_else(|| context().filter(|_| self.template.trim() == name.path)),
        }
    }

    fn is_value(&self, name: &str) -> bool {
        CONTEXT.contains(&name) || self.template_use.rejection_fields().any(|(known, _)| known == name)
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
            TemplateUse::Message | TemplateUse::BanMessage => "so this `message` shows it as it stands",
            TemplateUse::Name => "so this `name` is the same for all calls",
        };
        format!("`{written}` {without} is fixed text, {effect}; {remedy}")
    }
}

/// The form of a name in fixed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameForm {
    /// `{{name}}`
    Escaped,
    /// `{{@name}}`
    EscapedContext,
    /// `@name`
    At,
    /// An `@` right after a value may be a separator: `{user}@host`.
    AtBehindValue,
    /// `$name`
    Dollar,
    /// `<name>`, `[name]` or `%name%`
    Enclosed,
    /// `:name` or `#name`, where the sign separates nothing
    Sigil,
    /// `name`
    Bare,
}

/// A name, or a path of names, in fixed text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Name<'t> {
    /// The name with its fields and methods: `user.id()`.
    pub(super) path: &'t str,
    /// The path with the signs around it, but without braces.
    pub(super) written: &'t str,
    pub(super) form: NameForm,
}

impl<'t> Name<'t> {
    /// Returns all names in a text, also those after a dot: `sms.phone` has `sms` and `phone`.
    pub(super) fn find_all(text: &'t str, follows_value: bool) -> impl Iterator<Item = Self> {
        let starts = text.char_indices().filter(move |&(at, character)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            is_first(character) && !before.is_some_and(is_within)
        });
        starts.filter_map(move |(start, _)| Self::read_at(text, start, follows_value))
    }

    pub(super) fn root(&self) -> &'t str {
        self.path.split(['.', '(']).next().unwrap_or_default()
    }

    fn read_at(text: &'t str, start: usize, follows_value: bool) -> Option<Self> {
        let (before, rest) = text.split_at_checked(start)?;
        let (path, after) = rest.split_at_checked(path_length(rest))?;
        let written = |first: usize, last: usize| text.get(start - first..start + path.len() + last);
        if let Some(inner) = escaped(before, after) {
            let has_at = before.ends_with('@');
            let form = if has_at { NameForm::EscapedContext } else { NameForm::Escaped };
            return Some(Self { path, written: written(usize::from(has_at), inner)?, form });
        }
        if [('<', '>'), ('[', ']'), ('%', '%')]
            .iter()
            .any(|&(open, close)| before.ends_with(open) && after.starts_with(close))
        {
            return Some(Self { path, written: written(1, 1)?, form: NameForm::Enclosed });
        }
        let form = sign(before, follows_value);
        let signs = usize::from(form != NameForm::Bare);
        Some(Self { path, written: written(signs, 0)?, form })
    }
}

/// Returns the form of a name that follows this text.
fn sign(before: &str, follows_value: bool) -> NameForm {
    let mut backwards = before.chars().rev();
    let sign = backwards.next();
    let earlier = backwards.next();
    let is_behind_value = earlier.is_none() && follows_value;
    // The sign is part of a text like `a@b`, `US$` or `a::b`.
    if earlier.is_some_and(|earlier| earlier.is_alphanumeric() || Some(earlier) == sign) {
        return NameForm::Bare;
    }
    match sign {
        Some('@') if is_behind_value => NameForm::AtBehindValue,
        Some('@') => NameForm::At,
        Some('$') => NameForm::Dollar,
        Some(':' | '#') if !is_behind_value => NameForm::Sigil,
        _ => NameForm::Bare,
    }
}

/// Returns the length of the filters between a name and the following brace, if the name is in double braces.
fn escaped(before: &str, after: &str) -> Option<usize> {
    let opened = before.strip_suffix('@').unwrap_or(before).trim_end().ends_with('{');
    let (filters, _) = after.split_once('}').filter(|_| opened)?;
    let filters = filters.trim_end();
    (filters.is_empty() || filters.starts_with(':')).then_some(filters.len())
}

fn path_length(text: &str) -> usize {
    let name_length = |text: &str| text.find(|character| !is_within(character)).unwrap_or(text.len());
    let mut length = name_length(text);
    loop {
        let rest = text.get(length..).unwrap_or_default();
        length += match rest.strip_prefix('.') {
            _ if rest.starts_with("()") => 2,
            Some(member) if member.starts_with(is_within) => 1 + name_length(member),
            _ => return length,
        };
    }
}

fn is_first(character: char) -> bool {
    character == '_' || character.is_alphabetic()
}

fn is_within(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

/// Returns the first `%s` of a text, or another verb of `printf`.
pub(super) fn format_verb(text: &str) -> Option<&str> {
    text.match_indices('%').find_map(|(at, _)| {
        let (before, rest) = text.split_at_checked(at)?;
        let verb = rest.get(..2).filter(|verb| ["%s", "%d", "%i", "%u", "%v"].contains(verb))?;
        let ends =
            |character: Option<char>| !character.is_some_and(|character| is_within(character) || character == '%');
        (ends(before.chars().next_back()) && ends(rest.chars().nth(2))).then_some(verb)
    })
}
