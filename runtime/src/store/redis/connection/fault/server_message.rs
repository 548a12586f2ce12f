//! The refusal of a server, without the text that it or a script adds.

use std::fmt;

use ::redis::RedisError;

/// The text before the values that an answer quotes: keys, and for a greeting the password.
const QUOTED: &str = ", with args beginning with";

/// The text before the error of a script in Redis 6.
const RUNNING: &str = "Error running script (call to f_";

/// The code of an error and the text after it, like `OOM` and `command not allowed …`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerMessage<'a> {
    pub(super) code: &'a str,
    pub(super) text: &'a str,
}

impl<'a> ServerMessage<'a> {
    /// Returns the message; `None` if the error is not the server's.
    pub(super) fn of(error: &'a RedisError) -> Option<Self> {
        error.code().map(|code| Self::read(code, error.detail().unwrap_or_default()))
    }

    fn read(code: &'a str, text: &'a str) -> Self {
        let text = without_quote(text);
        match wrapped(text).filter(|_| code == "ERR") {
            Some(inner) => Self::split(inner),
            None => Self { code, text: without_place(text) },
        }
    }

    /// Splits an error of a script in Redis 6 into code and text. Without a code, it is an error of the script itself.
    fn split(inner: &'a str) -> Self {
        let inner = inner.trim_start_matches('-');
        match inner.split_once(' ').filter(|(code, _)| is_code(code)) {
            Some((code, text)) => Self { code, text },
            None => Self { code: "ERR", text: inner },
        }
    }
}

impl fmt::Display for ServerMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.text.trim_end_matches(['.', ' ']))
    }
}

/// Removes the values that an answer quotes.
pub(super) fn without_quote(text: &str) -> &str {
    text.split_once(QUOTED).map_or(text, |(text, _)| text)
}

/// Returns the end of `Error running script (call to f_…): @user_script:1: @user_script: 1: -OOM command not allowed`.
fn wrapped(text: &str) -> Option<&str> {
    let (_, mut inner) = text.strip_prefix(RUNNING)?.split_once("): ")?;
    while let Some(rest) = inner.strip_prefix("@user_script:") {
        inner = rest.split_once(": ")?.1;
    }
    Some(inner).filter(|inner| !inner.is_empty())
}

/// Removes the line of the script: ` script: 0123…, on @user_script:7.`
fn without_place(text: &str) -> &str {
    let (before, place) = text.rsplit_once(" script: ").unwrap_or((text, ""));
    if place.contains("on @user_script:") { before } else { text }
}

fn is_code(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(code: &'a str, text: &'a str) -> (&'a str, &'a str) {
        let ServerMessage { code, text } = ServerMessage::read(code, text);
        (code, text)
    }

    #[test]
    fn an_error_is_read_with_its_code() {
        assert_eq!(read("BUSY", "Redis is busy running a script."), ("BUSY", "Redis is busy running a script."));
        assert_eq!(read("ERR", "max number of clients reached"), ("ERR", "max number of clients reached"));
        assert_eq!(ServerMessage::read("OOM", "command not allowed.").to_string(), "OOM command not allowed");
    }

    #[test]
    fn an_error_of_redis_6_is_taken_out_of_what_its_script_wraps_around_it() {
        let call = "Error running script (call to f_0488038cc16b16b6c27a7befec54a90b159e3117): ";
        for (wrapped, inner) in [
            ("@user_script:1: @user_script: 1: -OOM command not allowed when", ("OOM", "command not allowed when")),
            ("@user_script:12: WRONGTYPE Operation against", ("WRONGTYPE", "Operation against")),
            (
                "@user_script:1: @user_script: 1: The user executing the script can't run",
                ("ERR", "The user executing the script can't run"),
            ),
            ("@user_script:1: user_script:1: attempt to perform", ("ERR", "user_script:1: attempt to perform")),
        ] {
            assert_eq!(read("ERR", &format!("{call}{wrapped}")), inner, "{wrapped}");
        }
        assert_eq!(read("ERR", call), ("ERR", call));
    }

    #[test]
    fn where_in_a_script_it_happened_is_left_out() {
        for place in
            [" script: 11631ba05bccc1029901576bbd2b147c272a1abc, on @user_script:1.", " script: on @user_script:1."]
        {
            assert_eq!(read("OOM", &format!("command not allowed{place}")), ("OOM", "command not allowed"));
        }
        assert_eq!(read("ERR", "a script: of mine"), ("ERR", "a script: of mine"));
    }

    #[test]
    fn the_values_that_a_server_quotes_are_left_out() {
        let text = "unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'default' 's3cret' ";
        assert_eq!(read("ERR", text), ("ERR", "unknown command 'HELLO'"));
    }
}
