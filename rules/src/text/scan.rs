//! Splits a text into words, with a cursor over them: the first step of reading it.

use std::ops::Range;
use std::time::Duration;

use crate::duration::parse_duration;
use crate::text::error::TextFault;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(String, Range<usize>),
    /// The text without its quotes.
    Quoted(String, Range<usize>),
    /// `,` or `·`, or another sign, which separates no rules.
    Separator(char),
}

impl Token {
    /// Returns the text of a word, or the text between quotes.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Word(text, _) | Self::Quoted(text, _) => text,
            Self::Separator(',') => ",",
            Self::Separator(';') => ";",
            Self::Separator('|') => "|",
            Self::Separator(_) => "·",
        }
    }

    /// Returns whether it separates the rules of a list. Other separators are mistakes.
    pub(super) fn separates_rules(&self) -> bool {
        matches!(self, Self::Separator(',' | '·'))
    }

    /// Returns a word that is not in quotes.
    pub(super) fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word, _) => Some(word),
            _ => None,
        }
    }

    /// Returns whether the token can only be a cron expression or a macro.
    pub(super) fn is_schedule(&self) -> bool {
        matches!(self, Self::Quoted(..)) || self.text().starts_with('@')
    }
}

/// Splits a text into words, quoted parts and separators.
pub(super) fn scan(text: &str) -> Result<Vec<Token>, TextFault> {
    let mut tokens = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((start, first)) = rest.next() {
        if first.is_whitespace() {
            continue;
        }
        if is_separator(first) {
            tokens.push(Token::Separator(first));
            continue;
        }
        let mut content = String::new();
        if is_quote(first) {
            loop {
                match rest.next() {
                    Some((end, last)) if last == first => {
                        tokens.push(Token::Quoted(content, start..end + last.len_utf8()));
                        break;
                    }
                    Some((_, '\\')) => content.extend(rest.next().map(|(_, escaped)| escaped)),
                    Some((_, within)) => content.push(within),
                    None => {
                        let what = format!("the quote {first} is not closed");
                        return Err(TextFault::new(what, format!("write {first} at its end")));
                    }
                }
            }
        } else {
            content.push(first);
            while let Some((_, next)) = rest.next_if(|&(_, next)| is_within_word(next)) {
                content.push(next);
            }
            let end = start + content.len();
            tokens.push(Token::Word(content, start..end));
        }
    }
    Ok(tokens)
}

/// Returns the part of the text that these tokens cover.
pub(super) fn written(text: &str, tokens: &[Token]) -> String {
    let range = |token: &Token| match token {
        Token::Word(_, range) | Token::Quoted(_, range) => Some(range.clone()),
        Token::Separator(_) => None,
    };
    let first = tokens.first().and_then(range);
    let last = tokens.last().and_then(range);
    first.zip(last).and_then(|(first, last)| text.get(first.start..last.end)).unwrap_or_default().to_owned()
}

fn is_within_word(character: char) -> bool {
    !character.is_whitespace() && !is_separator(character) && !is_quote(character)
}

fn is_separator(character: char) -> bool {
    matches!(character, ',' | '·' | ';' | '|')
}

/// Returns whether the character is a quote of names, in the [text form](crate::Rule#text-form).
#[must_use]
pub fn is_quote(character: char) -> bool {
    matches!(character, '"' | '\'')
}

/// Writes a name in quotes, as the [text form](crate::Rule#text-form) has names that are not [bare](is_bare).
#[must_use]
pub fn in_quotes(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns whether a name needs no quotes in the [text form](crate::Rule#text-form).
#[must_use]
pub fn is_bare(name: &str) -> bool {
    let is_plain = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | '.');
    !name.is_empty() && name.chars().all(is_plain)
}

/// The words that are not read yet.
pub(super) struct Words<'a>(&'a [Token]);

impl<'a> Words<'a> {
    pub(super) fn new(tokens: &'a [Token]) -> Self {
        Self(tokens)
    }

    pub(super) fn peek(&self) -> Option<&'a Token> {
        self.0.first()
    }

    /// Returns the next token, if it is a word without quotes.
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

    /// Reads the next word if one of these follows it, and it is none of them.
    pub(super) fn take_before(&mut self, following: &[&str]) -> Option<&'a str> {
        let [word, next, ..] = self.0 else { return None };
        let word = word.word().filter(|word| !following.contains(word))?;
        following.contains(&next.word()?).then(|| self.next()).map(|_| word)
    }

    /// Reads the number of a parameter.
    pub(super) fn number(&mut self, parameter: &str) -> Result<u64, TextFault> {
        let remedy = || format!("write a whole number, like `{parameter} 100`");
        let Some(token) = self.next() else {
            return Err(TextFault::new(format!("the number after `{parameter}` is missing"), remedy()));
        };
        let text = token.text();
        if token.word().is_some_and(is_number) {
            without_underscores(text)
                .parse()
                .map_err(|_| TextFault::new(format!("the number `{text}` is too great"), "write a smaller one"))
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

/// Whether the text is a whole number, like `20000` or `20_000`.
pub(super) fn is_number(text: &str) -> bool {
    text.split('_').all(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

pub(super) fn without_underscores(number: &str) -> String {
    number.replace('_', "")
}
