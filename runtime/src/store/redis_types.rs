//! Types of the store in Redis that exist with and without the feature `redis`.

use std::time::Duration;

use crate::clock::Clock;
use crate::subject::percent_decode;
#[cfg(feature = "redis")]
use crate::subject::percent_encode;
use crate::system::home::Driver;
#[cfg(feature = "redis")]
use crate::system::random_number;

/// The settings that all servers of a limiter share.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// The prefix of all keys.
    pub(crate) prefix: String,
    /// The longest time that a call takes.
    pub(crate) deadline: Duration,
    pub(crate) clock: Clock,
    /// Whether the user of the server may not write. Then a probe does not write either.
    pub(crate) looks_only: bool,
    /// The runtimes that drive the connections.
    pub(crate) driver: Driver,
}

/// The greatest length of an operator's name that is stored, in bytes.
const LONGEST_OPERATOR: usize = 200;

/// The greatest length of a version of the overrides: a number, and a name in which each byte is escaped.
#[cfg(feature = "redis")]
pub(crate) const LONGEST_VERSION: usize = 17 + 3 * LONGEST_OPERATOR;

/// An override or a policy as it is stored, in a field of a hash.
#[derive(Clone, Debug)]
pub(crate) struct StoredText {
    pub(crate) field: String,
    pub(crate) text: String,
}

impl StoredText {
    /// Reads a field. Bytes that are not UTF-8 become replacement characters, so their text is as unreadable as any
    /// foreign text.
    pub(crate) fn read((field, text): (Vec<u8>, Vec<u8>)) -> Self {
        let readable = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { field: readable(field), text: readable(text) }
    }

    /// The length of the field and the text.
    #[cfg(feature = "redis")]
    pub(crate) fn bytes(&self) -> usize {
        self.field.len() + self.text.len()
    }
}

/// Where the search for policies that nobody registers any more goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    At(String),
    Done,
}

/// What one registration has done.
#[derive(Debug)]
pub(crate) struct RegistrationResult {
    pub(crate) progress: Progress,
    pub(crate) removed: u64,
    /// How many policies found no place.
    pub(crate) refused: u64,
}

impl Progress {
    pub(crate) fn start() -> Self {
        Self::At("0".to_owned())
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self, Self::At(cursor) if cursor != "0")
    }
}

/// Returns a new version of the overrides. It names the operator who changes them, if known.
#[cfg(feature = "redis")]
pub(crate) fn new_version(operator: Option<&str>) -> String {
    let number = random_number(..);
    let Some(operator) = operator else { return format!("{number:016x}") };
    let kept = operator.char_indices().take_while(|(at, character)| at + character.len_utf8() <= LONGEST_OPERATOR);
    let operator: String = kept.map(|(_, character)| character).collect();
    format!("{number:016x} {}", percent_encode(&operator))
}

/// Returns the operator whose change has this version, if the version names one.
pub(crate) fn stored_operator(version: &str) -> Option<String> {
    let (_, operator) = version.split_once(' ')?;
    percent_decode(operator).filter(|operator| operator.len() <= LONGEST_OPERATOR)
}

#[cfg(all(test, feature = "redis"))]
mod tests {
    use super::*;

    #[test]
    fn a_version_names_its_operator_whose_name_is_cut_where_it_is_long() {
        let read = |operator: &str| stored_operator(&new_version(Some(operator)));
        for operator in ["zoe b.", "Анна Каренина", "service-account:deploy@project-1234.iam.gserviceaccount.com"]
        {
            assert_eq!(read(operator).as_deref(), Some(operator));
        }
        assert_eq!(read(&"日".repeat(100)), Some("日".repeat(66)));
        assert!(new_version(Some(&"日".repeat(100))).len() <= LONGEST_VERSION);
        assert_eq!(stored_operator(&new_version(None)), None);
    }
}
