//! Templates: text with placeholders in braces and their filters.

use std::slice;

use crate::alphabet::is_separator;
use crate::filter::{Filter, check_order};

/// A part of the text of a template: between two braces or outside of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text in which `{{` and `}}` have become single braces.
    Text(String),
    /// The text between two braces.
    Braced(&'a str),
}

/// A template as text and values of placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<TemplatePart>,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePart {
    /// Text in which doubled braces are single ones.
    Text(String),
    /// The value of a placeholder.
    Value(FilteredValue),
}

/// The value that a placeholder shows, like `email:trim:lower`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilteredValue {
    /// The placeholder without its braces, as it is written.
    pub text: String,
    /// The name of the value: an argument with its fields and methods, or `@` and the name of a value of the context.
    /// It contains all alternatives: `@user|@ip`.
    pub name: String,
    /// The filters in the order in which they are applied. Each alternative has its own.
    pub filters: Vec<Filter>,
    /// Values of the context, of which the first one that exists counts.
    alternatives: Vec<FilteredValue>,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    ///
    /// Returns the first mistake: a brace without its counterpart, or a mistaken filter.
    pub fn parse(text: &str) -> Result<Self, String> {
        let part = |piece| match piece {
            Piece::Text(text) => Ok(TemplatePart::Text(text)),
            Piece::Braced(inner) => FilteredValue::parse(inner).map(TemplatePart::Value),
        };
        Ok(Self { parts: scan(text)?.into_iter().map(part).collect::<Result<_, _>>()? })
    }

    /// Returns the parts in their order.
    #[must_use]
    pub fn parts(&self) -> &[TemplatePart] {
        &self.parts
    }

    /// Returns the values of placeholders in their order.
    pub fn values(&self) -> impl Iterator<Item = &FilteredValue> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Text(_) => None,
            TemplatePart::Value(value) => Some(value),
        })
    }

    /// Checks that text separates every two neighbouring values.
    ///
    /// # Errors
    ///
    /// Returns the first two values that are not separated, and the remedy.
    pub fn check_separated(&self) -> Result<(), String> {
        let mut previous: Option<&FilteredValue> = None;
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => previous = previous.filter(|_| !is_separator(text)),
                TemplatePart::Value(value) => {
                    if let Some(previous) = previous.replace(value) {
                        return Err(must_be_separated(&previous.text, &value.text));
                    }
                }
            }
        }
        Ok(())
    }
}

const BAR: char = '|';

impl FilteredValue {
    /// Reads the text between two braces.
    ///
    /// # Errors
    ///
    /// Returns the mistake: a filter that is unknown, repeated, or after one of a later stage; or an alternative that
    /// is no value of the context, or is there twice.
    pub fn parse(placeholder: &str) -> Result<Self, String> {
        if placeholder.contains(BAR) { Self::parse_alternatives(placeholder) } else { Self::parse_one(placeholder) }
    }

    fn parse_alternatives(placeholder: &str) -> Result<Self, String> {
        let mut alternatives: Vec<Self> = Vec::new();
        for text in placeholder.split(BAR) {
            let value = Self::parse_one(text.trim())?;
            if value.context_name().is_none() {
                let (written, remedy) = (&value.text, value.context_remedy("{@user|@ip}"));
                return Err(format!(
                    "`{{{placeholder}}}`: the alternative `{written}` is no value of the context; {remedy}"
                ));
            }
            value.check_not_debug()?;
            if alternatives.iter().any(|earlier| earlier.name == value.name) {
                return Err(format!("`{{{placeholder}}}` has the alternative `{}` twice; remove one", value.name));
            }
            alternatives.push(value);
        }
        let names: Vec<_> = alternatives.iter().map(|value| value.name.as_str()).collect();
        Ok(Self { text: placeholder.to_owned(), name: names.join("|"), filters: Vec::new(), alternatives })
    }

    fn parse_one(placeholder: &str) -> Result<Self, String> {
        let mut parts = placeholder.split(':').map(str::trim);
        let name = parts.next().unwrap_or_default().to_owned();
        let filters = parts.map(|filter| Filter::parse(filter, placeholder)).collect::<Result<Vec<_>, _>>()?;
        check_order(placeholder, &filters)?;
        Ok(Self { text: placeholder.to_owned(), name, filters, alternatives: Vec::new() })
    }

    /// Returns the alternatives, or the value itself if it has none.
    #[must_use]
    pub fn alternatives(&self) -> &[Self] {
        if self.alternatives.is_empty() { slice::from_ref(self) } else { &self.alternatives }
    }

    /// Returns whether the value has alternatives. In a subject, their names stand before their values.
    #[must_use]
    pub fn has_alternatives(&self) -> bool {
        !self.alternatives.is_empty()
    }

    /// Returns the text before the value of an alternative: `user:` for `@user`.
    #[must_use]
    pub fn tag(&self) -> String {
        format!("{}:", self.name.trim_start_matches('@'))
    }

    /// Returns the name of a value of the context without its `@`. It consists of letters, digits and `_`, and does not
    /// begin with a digit.
    #[must_use]
    pub fn context_name(&self) -> Option<&str> {
        let name = self.name.strip_prefix('@')?;
        let is_wordy = name.chars().all(|character| character == '_' || character.is_alphanumeric());
        (is_wordy && name.chars().next().is_some_and(|first| !first.is_numeric())).then_some(name)
    }

    /// Returns what to write in place of this, as it is no value of the context. `example` is a placeholder with one.
    #[must_use]
    pub fn context_remedy(&self, example: &str) -> String {
        let name = self.name.strip_prefix('@').unwrap_or_default();
        if name.is_empty() {
            return format!("write the name of one behind an `@`, like `{example}`");
        }
        "write its name with letters, digits and `_`, like `{@header_x_api_key}`".to_owned()
    }

    /// Refuses the filter `debug` on a value of the context.
    ///
    /// # Errors
    ///
    /// Returns the mistake and the remedy.
    pub fn check_not_debug(&self) -> Result<(), String> {
        if self.filters.contains(&Filter::Debug) {
            return Err(format!("`{{{}}}`: a value of the context is text already; remove `debug`", self.text));
        }
        Ok(())
    }
}

/// Splits a template at its braces.
///
/// # Errors
///
/// Returns an error about a brace without its counterpart.
pub fn scan(template: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        let (brace, after) = from.split_at(1);
        text.push_str(before);
        if let Some(after) = after.strip_prefix(brace) {
            text.push_str(brace);
            rest = after;
            continue;
        }
        let closed = if brace == "{" { after.split_once('}') } else { None };
        let (inner, after) = closed.ok_or_else(|| unpaired(brace))?;
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(Piece::Braced(inner));
        rest = after;
    }
    text.push_str(rest);
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

fn unpaired(brace: &str) -> String {
    format!("unmatched `{brace}`; write a placeholder like `{{phone}}`, or `{brace}{brace}` for the brace itself")
}

/// Characters that are invisible, but are no white space to Rust.
const INVISIBLE: [char; 13] = [
    '\u{ad}', '\u{115f}', '\u{1160}', '\u{180e}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{200e}', '\u{200f}',
    '\u{2060}', '\u{3164}', '\u{feff}', '\u{ffa0}',
];

/// Returns whether a text shows nothing: it is empty or has only white space and invisible characters.
#[must_use]
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|character| character.is_whitespace() || INVISIBLE.contains(&character))
}

/// Returns the message about two placeholders with nothing between them that separates their values.
#[must_use]
pub fn must_be_separated(first: &str, second: &str) -> String {
    format!(
        "different values of `{{{first}}}` and `{{{second}}}` could make the same key; put `:` between them, which no value \
         contains: `{{{first}}}:{{{second}}}`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::SubnetBits;

    #[test]
    fn a_template_is_split_at_its_braces() {
        let text = |text: &str| Piece::Text(text.to_owned());
        assert_eq!(scan("a{b}{{c}}{d}"), Ok(vec![text("a"), Piece::Braced("b"), text("{c}"), Piece::Braced("d")]));
        assert_eq!(scan(""), Ok(vec![]));
        for unpaired in ["{", "}", "a{b", "a}b", "{a}}"] {
            assert!(scan(unpaired).unwrap_err().starts_with("unmatched `"), "{unpaired}");
        }
    }

    #[test]
    fn a_placeholder_is_split_into_its_value_and_its_filters() {
        let value = |text: &str| FilteredValue::parse(text).map(|value| (value.name, value.filters));
        assert_eq!(value("email : trim:lower"), Ok(("email".to_owned(), vec![Filter::Trim, Filter::Lower])));
        assert_eq!(value("@ip"), Ok(("@ip".to_owned(), vec![])));
        let mistakes = [
            ("a:tirm", "`{a:tirm}` has the unknown filter `tirm`; did you mean `trim`?"),
            ("a:", "`{a:}` has no filter after its `:`; the filters are `debug`, `lower`, `trim`, `hash`, `subnet`"),
            ("a:trim:trim", "`{a:trim:trim}` has the filter `trim` twice; write `{a:trim}`"),
            ("a:hash:lower", "`{a:hash:lower}` applies `lower` to the result of `hash`; write `{a:lower:hash}`"),
            ("a:subnet(24):subnet", "`{a:subnet(24):subnet}` has the filter `subnet` twice; write `{a:subnet(24)}`"),
            ("a:lower(1)", "`{a:lower(1)}`: the filter `lower` takes no argument; write just `lower`"),
            ("a:subnets(24)", "`{a:subnets(24)}` has the unknown filter `subnets`; did you mean `subnet`?"),
        ];
        for (placeholder, mistake) in mistakes {
            assert_eq!(FilteredValue::parse(placeholder), Err(mistake.to_owned()));
        }
    }

    #[test]
    fn networks_have_the_bits_that_are_asked_for() {
        let filters = |text: &str| FilteredValue::parse(text).map(|value| value.filters);
        for (text, ipv4, ipv6) in [
            ("a:subnet", 32, 64),
            ("a:subnet(24)", 24, 64),
            ("a:subnet( 24 , 56 )", 24, 56),
            ("a : subnet (1,1)", 1, 1),
            ("a:subnet(32,128)", 32, 128),
        ] {
            assert_eq!(filters(text), Ok(vec![Filter::Subnet(SubnetBits { ipv4, ipv6 })]), "{text}");
        }
        for (arguments, mistake) in [
            ("(33)", "`subnet` takes from 1 to 32 bits of IPv4 addresses, like `subnet(24)`"),
            ("(0)", "`subnet` takes from 1 to 32 bits of IPv4 addresses, like `subnet(24)`"),
            ("(280)", "`subnet` takes from 1 to 32 bits of IPv4 addresses, like `subnet(24)`"),
            ("(24, 129)", "`subnet` takes from 1 to 128 bits of IPv6 addresses, like `subnet(24, 56)`"),
            ("(24, 0)", "`subnet` takes from 1 to 128 bits of IPv6 addresses, like `subnet(24, 56)`"),
        ] {
            assert_eq!(filters(&format!("a:subnet{arguments}")), Err(format!("`{{a:subnet{arguments}}}`: {mistake}")));
        }
        for arguments in ["(", "()", "(24", "(24) 56", "(24, 56, 8)", "(24,)", "(+24)", "(a)", "(-1)", "(/24)"] {
            let mistake = filters(&format!("a:subnet{arguments}")).unwrap_err();
            assert!(mistake.ends_with("like `subnet(24)` or `subnet(24, 56)`"), "{mistake}");
        }
    }

    #[test]
    fn alternatives_are_values_of_the_context_each_with_filters_of_its_own() {
        let value = FilteredValue::parse("@user:lower | @ip").unwrap();
        assert_eq!((value.name.as_str(), value.context_name()), ("@user|@ip", None));
        let shown: Vec<_> = value.alternatives().iter().map(|value| (value.tag(), value.filters.clone())).collect();
        assert_eq!(shown, [("user:".to_owned(), vec![Filter::Lower]), ("ip:".to_owned(), vec![])]);
        for (placeholder, mistake) in [
            ("@user|ip", "`{@user|ip}`: the alternative `ip` is no value of the context; write the name of one"),
            ("phone|@ip", "`{phone|@ip}`: the alternative `phone` is no value of the context"),
            ("@user|", "`{@user|}`: the alternative `` is no value of the context"),
            (
                "@header_x-key|@ip",
                "`{@header_x-key|@ip}`: the alternative `@header_x-key` is no value of the context; write its name with letters",
            ),
            ("@user|@user:lower", "`{@user|@user:lower}` has the alternative `@user` twice; remove one"),
            ("@user|@ip:debug", "`{@ip:debug}`: a value of the context is text already"),
            ("@user:lowr|@ip", "`{@user:lowr}` has the unknown filter `lowr`; did you mean `lower`?"),
        ] {
            let found = FilteredValue::parse(placeholder).unwrap_err();
            assert!(found.starts_with(mistake), "{found}");
        }
    }

    #[test]
    fn a_text_that_shows_nothing_is_blank() {
        for blank in ["", " ", "\t\u{a0}\u{2003}", "\u{200b}", " \u{feff}\u{3164}"] {
            assert!(is_blank(blank), "{blank:?}");
        }
        for text in ["0", "-", "\u{200b}a", "短信"] {
            assert!(!is_blank(text), "{text:?}");
        }
    }
}
