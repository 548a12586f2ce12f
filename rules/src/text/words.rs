//! A cursor over the words of a rule.

use std::time::Duration;

use crate::duration::parse_duration;
use crate::text::error::TextFault;
use crate::text::scan::Token;

/// The words that are not read yet.
pub(super) struct Words<'a>(&'a [Token]);

impl<'a> Words<'a> {
    pub(super) fn new(tokens: &'a [Token]) -> Self {
        Self(tokens)
    }

    pub(super) fn peek(&self) -> Option<&'a Token> {
        self.0.first()
    }

    /// Returns the next token if it is a word without quotes.
    pub(super) fn peek_word(&self) -> Option<&'a str> {
        self.peek()?.word()
    }

    pub(super) fn next(&mut self) -> Option<&'a Token> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// Reads this word if it is the next one.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let found = self.peek_word() == Some(word);
        if found {
            self.next();
        }
        found
    }

    /// Reads the number of a parameter.
    pub(super) fn number(&mut self, parameter: &str) -> Result<u64, TextFault> {
        let remedy = || format!("write a whole number, like `{parameter} 100`");
        let Some(token) = self.next() else {
            return Err(TextFault::new(format!("the number after `{parameter}` is missing"), remedy()));
        };
        let text = token.text();
        if token.word().is_some_and(is_number) {
            text.parse().map_err(|_| TextFault::new(format!("the number `{text}` is too great"), "write a smaller one"))
        } else {
            Err(TextFault::new(format!("`{text}` after `{parameter}` is not a whole number"), remedy()))
        }
    }

    /// Reads the duration of a parameter.
    pub(super) fn duration(&mut self, parameter: &str) -> Result<Duration, TextFault> {
        let Some(token) = self.next() else {
            let what = format!("the duration after `{parameter}` is missing");
            return Err(TextFault::new(what, format!("write a whole number and a unit, like `{parameter} 1h`")));
        };
        let text = token.text();
        parse_duration(text).map_err(|error| TextFault::duration(text, error))
    }
}

/// Returns whether a text consists of digits.
pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
