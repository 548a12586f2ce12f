//! Mistakes are reported at their places, and in the words of the compiler.

use std::fs;

use tallygate::config::{ConfigError, Mistake, Policies};
use tallygate::{Error, ErrorKind};

use super::refused::{Refused, refused_files};

/// Stands before each place that is reported.
const MARK: char = '‸';

/// A line, a column, and what is said of it.
type Found = (usize, usize, String);

/// Takes the marks out of a text, and returns their places.
pub(super) fn unmarked(marked: &str) -> (String, Vec<(usize, usize)>) {
    let mut text = String::new();
    let mut places = Vec::new();
    for character in marked.chars() {
        if character == MARK {
            let column = text.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            places.push((text.matches('\n').count() + 1, column));
        } else {
            text.push(character);
        }
    }
    (text, places)
}

/// What is said of a file, by the compiler where it refuses the same.
fn expected(case: &Refused) -> Vec<String> {
    let Some(name) = case.compile_error else { return case.mistakes.iter().map(ToString::to_string).collect() };
    let path = format!("{}/../tests/ui/fail/{name}.stderr", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.lines().filter_map(|line| line.strip_prefix("error: ")).map(str::to_owned).collect()
}

fn found(error: &ConfigError) -> Vec<Found> {
    let found = |mistake: &Mistake| (mistake.line(), mistake.column(), mistake.message().to_owned());
    error.mistakes().iter().map(found).collect()
}

#[test]
fn every_mistake_is_reported_at_its_place_in_the_words_of_the_compiler() {
    let mut differing = Vec::new();
    for case in refused_files() {
        let (text, places) = unmarked(case.text);
        let expected: Vec<Found> =
            places.iter().zip(expected(case)).map(|(&(line, column), message)| (line, column, message)).collect();
        let found = Policies::from_toml(&text).err().as_ref().map(found).unwrap_or_default();
        if found.is_empty() || found != expected || expected.len() != places.len() {
            differing.push((text, found, expected));
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
}

#[test]
fn an_error_is_one_line_for_each_mistake_and_part_of_the_error_of_the_library() {
    let error = Policies::from_toml("policy.a.rules = ['0 per 1s']\npolicy.b = 7").unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1, column 19: `count` must be at least 1, like `count = 10`\n\
         line 2, column 12: a policy must be a table, like `[policy.\"b\"]`"
    );
    let whole = Error::from(error.clone());
    assert_eq!((whole.kind(), whole.to_string()), (ErrorKind::Config, error.to_string()));
    let source = std::error::Error::source(&whole).unwrap().downcast_ref::<ConfigError>().unwrap();
    assert_eq!(source.mistakes(), error.mistakes());
    assert!(std::error::Error::source(source).unwrap().is::<Mistake>());
}
