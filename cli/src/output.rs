//! The output of a command: for people, and for scripts.

use serde_json::Value;
use tallygate::admin::__shared::is_unseen;

use crate::failure::Exit;

#[derive(Debug)]
pub(crate) struct Output {
    /// For people.
    pub(crate) text: String,
    /// For scripts.
    pub(crate) json: Value,
    pub(crate) exit: Exit,
}

impl Output {
    pub(crate) fn done(text: impl Into<String>, json: Value) -> Self {
        Self { text: text.into(), json, exit: Exit::Done }
    }

    pub(crate) fn with_exit(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }

    pub(crate) fn as_text(&self) -> String {
        let text = printable(&self.text);
        if text.is_empty() || text.ends_with('\n') { text } else { text + "\n" }
    }

    /// Returns the document on several lines, safe for a terminal. Only texts can have unsafe characters, so each can be
    /// written by its number.
    pub(crate) fn as_json(&self) -> String {
        let mut shown = String::new();
        for character in format!("{:#}", self.json).chars() {
            if is_unseen(character) && character != '\n' {
                let mut units = [0; 2];
                shown.extend(character.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
            } else {
                shown.push(character);
            }
        }
        shown + "\n"
    }
}

/// Returns the text without characters that control a terminal: others choose names and subjects.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_unseen(character) && character != '\n' {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_controls_no_terminal() {
        assert_eq!(printable("sms\u{1b}[2J\r é\n"), "sms\\u{1b}[2J\\r é\n");
        assert_eq!(printable("a\u{9b}2J\u{202e}b"), "a\\u{9b}2J\\u{202e}b");
        let json = Output::done("", Value::from("a\u{9b}\u{1b}\u{e0041}é")).as_json();
        assert_eq!(json, "\"a\\u009b\\u001b\\udb40\\udc41é\"\n");
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), "a\u{9b}\u{1b}\u{e0041}é");
        assert_eq!(Output::done("one", Value::Null).as_text(), "one\n");
        assert_eq!(Output::done("", Value::Null).as_text(), "");
    }
}
