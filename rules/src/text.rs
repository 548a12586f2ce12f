//! The text form of rules for people, documented at [`Rule`].

mod error;
mod meant;
mod parse;
mod repair;
mod scan;
mod show;
#[cfg(test)]
mod tests;
mod units;
mod words;

use std::str::FromStr;

pub use self::error::ParseRuleError;
pub use self::meant::{argument_meant, attribute_form, duration_meant, read_duration, rule_meant};

use self::error::TextFault;
use self::parse::parse;
use self::repair::repair;
use self::scan::{Token, scan};
use crate::rule::Rule;

/// Reads the [text form](Rule#text-form) of one rule.
///
/// It checks the syntax; [`validate`](crate::validate()) checks the rule.
impl FromStr for Rule {
    type Err = ParseRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        scan(text).and_then(|tokens| parse(&tokens)).map_err(|fault| explain(text, fault))
    }
}

/// Reads the [text form](Rule#text-form) of a list of rules, separated by `,` or `·`.
///
/// It checks the syntax; [`validate`](crate::validate()) checks the rules.
///
/// # Errors
///
/// Returns one error for each mistaken rule. A list without rules is mistaken.
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
