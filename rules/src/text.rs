//! The text form of rules for people, documented at [`Rule`].

mod error;
mod meant;
mod parse;
mod repair;
mod scan;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

pub use self::error::ParseRuleError;
pub use self::meant::{argument_meant, attribute_form, duration_meant, read_duration, rule_meant};
pub use self::scan::{in_quotes, is_bare, is_quote};

use self::error::TextFault;
use self::parse::parse;
use self::repair::repair;
use self::scan::{Token, scan};
use crate::algorithm::{Algorithm, Role, TokenBucket};
use crate::duration::format_duration;
use crate::rule::Rule;

/// Reads the [text form](Rule#text-form) of one rule.
///
/// This checks the syntax; [`validate`](crate::validate()) checks the rule.
impl FromStr for Rule {
    type Err = ParseRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        scan(text).and_then(|tokens| parse(&tokens)).map_err(|fault| explain(text, fault))
    }
}

/// Reads the [text form](Rule#text-form) of a list of rules, separated by `,` or `·`.
///
/// This checks the syntax; [`validate`](crate::validate()) checks the rules.
///
/// # Errors
///
/// Returns one error for each mistaken rule, and an error for a list without rules.
///
/// # Examples
///
/// ```
/// use tallygate_rules::{format_rules, parse_rules};
///
/// let rules = parse_rules("1 per 1m, 10 per 1d").unwrap();
/// assert_eq!(rules[1].count(), 10);
/// assert_eq!(format_rules(&rules), "1 per 1m, 10 per 1d");
/// assert_eq!(parse_rules("1 per 1m · 10 per 1d"), Ok(rules));
///
/// let errors = parse_rules("1 per 1m, 10 per day, per 1h").unwrap_err();
/// assert_eq!(errors.len(), 2);
/// ```
pub fn parse_rules(text: &str) -> Result<Vec<Rule>, Vec<ParseRuleError>> {
    let tokens = scan(text).map_err(|fault| vec![explain(text, fault)])?;
    let entries = tokens.split(Token::separates_rules);
    let mut rules = Vec::new();
    let mut errors = Vec::new();
    for entry in entries {
        let read =
            if entry.is_empty() && !tokens.is_empty() { Err(TextFault::beside_separator()) } else { parse(entry) };
        match read {
            Ok(rule) => rules.push(rule),
            Err(fault) => errors.push(explain(&scan::written(text, entry), fault)),
        }
    }
    if errors.is_empty() { Ok(rules) } else { Err(errors) }
}

/// Writes the [text form](Rule#text-form) of a list of rules, separated by `, `.
#[must_use]
pub fn format_rules(rules: &[Rule]) -> String {
    let texts: Vec<_> = rules.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

fn explain(text: &str, fault: TextFault) -> ParseRuleError {
    ParseRuleError::new(text.trim(), fault, repair(text))
}

/// Writes the [text form](Rule#text-form), like `100 per 1h as hourly`. `{:#}` leaves the name out.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.role() {
            Role::Duplicate if self.count() == 1 => f.write_str("prevent_duplicate")?,
            Role::Duplicate => write!(f, "prevent_duplicate {}", CountText(self))?,
            _ if self.is_approximate() => write!(f, "about {}", CountText(self))?,
            _ => write!(f, "{}", CountText(self))?,
        }
        f.write_str(if self.lease().is_some() { " concurrent lease " } else { " per " })?;
        match self.algorithm() {
            Algorithm::Concurrency { lease } => f.write_str(&format_duration(*lease))?,
            Algorithm::SlidingWindow { per } | Algorithm::SlidingCounter { per } => {
                f.write_str(&format_duration(*per))?;
            }
            Algorithm::FixedWindow { per } => write!(f, "fixed {}", format_duration(*per))?,
            #[cfg(feature = "cron")]
            Algorithm::Cron { schedule } => write!(f, "{schedule}")?,
            Algorithm::TokenBucket(bucket) => write_bucket(f, bucket)?,
        }
        if self.is_shadow() {
            f.write_str(" shadow")?;
        }
        match self.name() {
            Some(name) if !f.alternate() => {
                f.write_str(" as ")?;
                if is_bare(name) { f.write_str(name) } else { f.write_str(&in_quotes(name)) }
            }
            _ => Ok(()),
        }
    }
}

struct CountText<'a>(&'a Rule);

impl fmt::Display for CountText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_varying() { f.write_str("n") } else { write!(f, "{}", self.0.count()) }?;
        self.0.unit().map_or(Ok(()), |unit| write!(f, " {unit}"))
    }
}

fn write_bucket(f: &mut fmt::Formatter<'_>, bucket: &TokenBucket) -> fmt::Result {
    f.write_str(&format_duration(bucket.per()))?;
    match bucket.capacity() {
        Some(capacity) => write!(f, " burst {capacity}")?,
        None => f.write_str(" bucket")?,
    }
    if let Some(initial) = bucket.initial() {
        write!(f, " initial {initial}")?;
    }
    if let Some(reset_after) = bucket.reset_after() {
        write!(f, " reset_after {}", format_duration(reset_after))?;
    }
    Ok(())
}
