//! Names in fixed text, and the signs around them.

/// How a name is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameForm {
    /// `{{name}}`
    Escaped,
    /// `{{@name}}`
    EscapedContext,
    /// `@name`
    At,
    /// The same right behind a value, where the sign may be a separator: `{user}@host`.
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
    /// The same with the signs around it, but without braces.
    pub(super) written: &'t str,
    pub(super) form: NameForm,
}

impl<'t> Name<'t> {
    /// Returns all names of a text, also those behind a dot: `sms.phone` has `sms` and `phone`.
    pub(super) fn all(text: &'t str, follows_value: bool) -> impl Iterator<Item = Self> {
        let starts = text.char_indices().filter(move |&(at, character)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            is_first(character) && !before.is_some_and(is_within)
        });
        starts.filter_map(move |(start, _)| Self::at(text, start, follows_value))
    }

    /// Returns the first name of its path.
    pub(super) fn root(&self) -> &'t str {
        self.path.split(['.', '(']).next().unwrap_or_default()
    }

    fn at(text: &'t str, start: usize, follows_value: bool) -> Option<Self> {
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

/// Returns the form of a name behind this text.
fn sign(before: &str, follows_value: bool) -> NameForm {
    let mut backwards = before.chars().rev();
    let sign = backwards.next();
    let earlier = backwards.next();
    let is_behind_value = earlier.is_none() && follows_value;
    // As in `a@b`, `US$` and `a::b`.
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

/// Returns the length of the filters between a name and the brace behind it, if the name stands in double braces.
fn escaped(before: &str, after: &str) -> Option<usize> {
    let opened = before.strip_suffix('@').unwrap_or(before).trim_end().ends_with('{');
    let (filters, _) = after.split_once('}').filter(|_| opened)?;
    let filters = filters.trim_end();
    (filters.is_empty() || filters.starts_with(':')).then_some(filters.len())
}

/// Returns the length of the path that a text starts with.
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
