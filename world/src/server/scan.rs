//! What `SCAN` and `HSCAN` are asked, and how they answer.

use super::arguments::Arguments;
use super::glob;
use super::numbers::integer;
use super::refusal::{NO_INTEGER, Refusal, SYNTAX};
use super::reply::Reply;

/// How many keys are looked at if nothing else is said.
const COUNT: usize = 10;

/// What is looked for.
pub(crate) struct ScanOptions {
    pub(crate) count: usize,
    pattern: Option<Vec<u8>>,
    /// The name of a type of values.
    pub(crate) kind: Option<Vec<u8>>,
}

impl ScanOptions {
    pub(crate) fn cursor(arguments: &Arguments, index: usize) -> Result<u64, Refusal> {
        arguments.text(index).parse().map_err(|_| Refusal::known("ERR invalid cursor"))
    }

    /// Reads the options from that word on.
    pub(crate) fn read(arguments: &Arguments, from: usize, has_types: bool) -> Result<Self, Refusal> {
        let mut options = Self { count: COUNT, pattern: None, kind: None };
        for index in (from..arguments.len()).step_by(2) {
            let value = arguments.get(index + 1).ok_or(SYNTAX)?;
            if arguments.is(index, "count") {
                let count = integer(value).ok_or(NO_INTEGER)?;
                options.count = usize::try_from(count).ok().filter(|count| *count > 0).ok_or(SYNTAX)?;
            } else if arguments.is(index, "match") {
                options.pattern = Some(value.to_vec());
            } else if has_types && arguments.is(index, "type") {
                options.kind = Some(value.to_ascii_lowercase());
            } else {
                return Err(SYNTAX);
            }
        }
        Ok(options)
    }

    /// Whether a name is looked for.
    pub(crate) fn fits(&self, name: &[u8]) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| glob::matches(pattern, name))
    }

    pub(crate) fn answer(cursor: u64, items: Vec<Reply>) -> Reply {
        Reply::array([Reply::text(cursor.to_string()), Reply::Array(items)])
    }
}
