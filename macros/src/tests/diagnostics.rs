//! The diagnostics of the attribute, rendered as the compiler renders them.
//!
//! The cases are the files of `tests/ui`, and the text expected for each lies beside it. Some of the cases are also
//! compiled, in `tests/tests/ui.rs`, against the same text: so what is rendered here is what the compiler shows.

mod annotated;
mod case;
mod rendered;

use std::env;
use std::fmt::Write as _;
use std::fs;

use self::case::Case;

#[test]
fn each_mistake_is_reported_at_its_place_with_its_remedy() {
    let mut differences = String::new();
    for case in case::all("fail") {
        let found = rendered::diagnostics(&case);
        assert!(!found.is_empty(), "{}: the attribute reports nothing; move the case to `compiler`", case.path());
        if found != case.expected() {
            differ(&case, &found, &mut differences);
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

#[test]
fn a_case_for_the_compiler_has_no_mistake_that_the_attribute_reports() {
    for case in case::all("compiler") {
        assert_eq!(rendered::diagnostics(&case), "", "{}: move the case to `fail`", case.path());
    }
}

#[test]
fn a_case_has_at_most_twenty_lines() {
    for case in case::all("fail").into_iter().chain(case::all("compiler")) {
        assert!(case.text().lines().count() <= 20, "{}", case.path());
    }
}

/// Writes what was found, if `TRYBUILD=overwrite` asks for it as in `ui.rs`, and else describes the difference.
fn differ(case: &Case, found: &str, differences: &mut String) {
    if env::var_os("TRYBUILD").is_some_and(|wanted| wanted == "overwrite") {
        fs::write(case.expectation(), found).expect("the expected text can be written");
    } else {
        let path = case.path();
        let expected = case.expected();
        write!(differences, "\n{path}\n--- expected\n{expected}--- found\n{found}").expect("a string takes all");
    }
}
