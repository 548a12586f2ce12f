//! The names of units, which rules count: tokens, bytes.

use crate::limits::MAX_UNIT_BYTES;
use crate::suggestion::snake_case;

/// The name of the unit that a rule counts unless it says another.
pub const CALLS: &str = "calls";

/// Words of the text form of rules.
const GRAMMAR: [&str; 13] = [
    "n",
    "about",
    "prevent_duplicate",
    "per",
    "fixed",
    "concurrent",
    "lease",
    "burst",
    "bucket",
    "initial",
    "reset_after",
    "shadow",
    "as",
];

/// Columns of a trace of calls, in which each unit has a column of its own.
const TRACE_COLUMNS: [&str; 3] = ["subject", "cost", "pause"];

/// Other words for calls. A unit of such a name would be one that no call pays for.
pub(crate) const OTHER_WORDS_FOR_CALLS: [&str; 16] = [
    "x", "r", "request", "requests", "req", "reqs", "call", "time", "times", "hit", "hits", "permit", "permits",
    "attempt", "attempts", "op",
];

/// Checks the name of a unit: lower-case letters, digits and `_`, as it becomes a part of metrics and response fields.
///
/// # Errors
///
/// Returns the mistake with the remedy.
///
/// # Examples
///
/// ```
/// use tallygate_rules::check_unit;
///
/// assert_eq!(check_unit("output_tokens"), Ok(()));
/// let mistake = check_unit("Output Tokens").unwrap_err();
/// assert_eq!(mistake, "`Output Tokens` is not the name of a unit; did you mean `output_tokens`?");
/// ```
pub fn check_unit(name: &str) -> Result<(), String> {
    match unit_fault(name) {
        Some((fault, remedy)) => Err(format!("{fault}; {remedy}")),
        None => Ok(()),
    }
}

/// Returns what is wrong with the name of a unit, and the remedy.
pub(crate) fn unit_fault(name: &str) -> Option<(String, String)> {
    let length = name.len();
    let (fault, remedy) = if name.trim().is_empty() {
        ("the name of a unit must not be empty".to_owned(), "write one, like `tokens`")
    } else if length > MAX_UNIT_BYTES {
        (format!("the name of a unit has {MAX_UNIT_BYTES} bytes at most, and this one has {length}"), "shorten it")
    } else if GRAMMAR.contains(&name) {
        (format!("`{name}` is a word of the text of rules, and not the name of a unit"), "write another, like `tokens`")
    } else if TRACE_COLUMNS.contains(&name) {
        (format!("`{name}` is a column of a trace of calls, and not the name of a unit"), "write another, like `cents`")
    } else if OTHER_WORDS_FOR_CALLS.contains(&name) {
        (format!("`{name}` means calls, which a rule counts without a unit"), "remove it, or write another name")
    } else if is_spelt_right(name) {
        return None;
    } else {
        let meant = Some(snake_case(name)).filter(|meant| is_spelt_right(meant));
        let otherwise = "write a lower-case letter, and then such letters, digits or `_`, like `tokens`";
        let remedy = meant.map_or_else(|| otherwise.to_owned(), |meant| format!("did you mean `{meant}`?"));
        return Some((format!("`{name}` is not the name of a unit"), remedy));
    };
    Some((fault, remedy.to_owned()))
}

fn is_spelt_right(name: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(is_of_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Rule;

    fn mistake(name: &str) -> String {
        check_unit(name).unwrap_err()
    }

    #[test]
    fn a_unit_has_a_name_that_metrics_and_fields_can_carry() {
        for name in ["tokens", "t", "input_tokens_2", CALLS, &"b".repeat(MAX_UNIT_BYTES)] {
            assert_eq!(check_unit(name), Ok(()), "{name}");
        }
        assert!(mistake(" ").starts_with("the name of a unit must not be empty"));
        assert!(mistake(&"b".repeat(MAX_UNIT_BYTES + 1)).ends_with("at most, and this one has 33; shorten it"));
        for (name, meant) in [("Tokens", "tokens"), ("inputTokens", "input_tokens"), ("kilo-bytes", "kilo_bytes")] {
            assert_eq!(mistake(name), format!("`{name}` is not the name of a unit; did you mean `{meant}`?"));
        }
        for name in ["2fast", "_tokens", "tökens", "a/b", "{unit}"] {
            assert!(mistake(name).contains("write a lower-case letter, and then"), "{name}");
        }
    }

    #[test]
    fn a_word_for_calls_is_not_another_unit() {
        assert!(mistake("requests").starts_with("`requests` means calls, which a rule counts without a unit"));
    }

    #[test]
    fn a_column_of_a_trace_is_not_a_unit() {
        for column in ["subject", "cost", "pause"] {
            assert!(mistake(column).starts_with(&format!("`{column}` is a column of a trace of calls")));
        }
        assert!(check_unit("time").is_err());
    }

    #[test]
    fn each_word_of_the_text_of_a_rule_is_not_a_unit() {
        let of_bucket = "n per 1s burst 5 initial 3 reset_after 1h bucket shadow as x";
        let others = "about n per fixed 1s, prevent_duplicate, 1 concurrent lease 1s";
        let forms = Rule::of_each_algorithm().map(|rule| rule.to_string()).collect::<Vec<_>>().join(" ");
        let texts = format!("{of_bucket} {others} {forms}");
        let words =
            texts.split([' ', ',']).filter(|word| !word.contains(|c: char| !c.is_ascii_lowercase() && c != '_'));
        for word in words.filter(|word| !word.is_empty()) {
            assert!(check_unit(word).is_err(), "{word}");
        }
    }
}
