//! What is said of arguments that are missing, unknown or of another type.

use crate::nearest::nearest;
use crate::synonym::synonym;

/// Said of a name with a placeholder.
pub const NAME_WITH_BRACES: &str =
    "`name` is fixed text; remove the braces, and use placeholders in a `key`, like `key = \"sms:{phone}\"`";

/// Said of the key of a rule that is empty.
pub const EMPTY_KEY: &str =
    "`key` must not be empty; to count all calls together, write any text, like `key = \"all\"`";

/// Says that an argument is missing.
#[must_use]
pub fn missing_argument(name: &str, example: &str) -> String {
    format!("`{name}` is missing; add it, like `{example}`")
}

/// Says that an argument is to be a text.
#[must_use]
pub fn must_be_text(name: &str, example: &str) -> String {
    format!("`{name}` must be a text in quotes, like `{example}`")
}

/// Says that an argument is to be a whole number.
#[must_use]
pub fn must_be_number(name: &str, example: &str) -> String {
    format!("`{name}` must be a whole number, like `{example}`")
}

/// Says that an argument is to be a number, which may have a fraction.
#[must_use]
pub fn must_be_fraction(name: &str, example: &str) -> String {
    format!("`{name}` must be a number, like `{example}`")
}

/// Says that an argument is none of those that are known, and which one was probably meant.
///
/// # Examples
///
/// ```
/// let text = tallygate_rules::unknown_argument("cont", &["count", "per"]);
/// assert_eq!(text, "unknown argument `cont`; did you mean `count`?");
/// ```
#[must_use]
pub fn unknown_argument(name: &str, known: &[&str]) -> String {
    let remedy = match synonym(name, known).or_else(|| nearest(name, known.iter().copied())) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("the arguments are `{}`", known.join("`, `")),
    };
    format!("unknown argument `{name}`; {remedy}")
}
