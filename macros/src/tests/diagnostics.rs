//! The diagnostics of the attribute, rendered as the compiler renders them.
//!
//! The cases are the files of `tests/ui`, each beside its expected text. `tests/ui/ui.rs` compiles some of them against
//! this text, which shows that the compiler reports what is rendered here.

mod annotated;

use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{env, fs};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use proc_macro2::TokenStream;

use self::annotated::Annotated;
use crate::pipeline::try_limit;

#[test]
fn each_mistake_is_reported_at_its_place_with_its_remedy() {
    let mut differences = String::new();
    for case in cases("fail") {
        let found = diagnostics(&case);
        assert!(!found.is_empty(), "{}: the attribute reports nothing; move the case to `compiler`", case.path());
        if found != case.expected() {
            differ(&case, &found, &mut differences);
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

#[test]
fn a_case_for_the_compiler_has_no_mistake_that_the_attribute_reports() {
    for case in cases("compiler") {
        assert_eq!(diagnostics(&case), "", "{}: move the case to `fail`", case.path());
    }
}

#[test]
fn a_case_has_at_most_twenty_lines() {
    for case in cases("fail").into_iter().chain(cases("compiler")) {
        assert!(case.text().lines().count() <= 20, "{}", case.path());
    }
}

/// Describes the difference. If `TRYBUILD=overwrite` is set, as for `ui.rs`, it writes the found text instead.
fn differ(case: &Case, found: &str, differences: &mut String) {
    if env::var_os("TRYBUILD").is_some_and(|wanted| wanted == "overwrite") {
        fs::write(case.expectation(), found).expect("the expected text can be written");
    } else {
        let path = case.path();
        let expected = case.expected();
        write!(differences, "\n{path}\n--- expected\n{expected}--- found\n{found}").expect("a string takes all");
    }
}

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/ui");

struct Case {
    file: PathBuf,
    text: String,
}

/// Returns the cases of a folder by name, without those for a feature that is off.
fn cases(folder: &str) -> Vec<Case> {
    let entries = fs::read_dir(Path::new(FOLDER).join(folder)).expect("the folder of cases can be read");
    let files = entries.map(|entry| entry.expect("an entry can be read").path());
    let mut cases: Vec<_> = files.filter(|file| file.extension().is_some_and(|end| end == "rs")).map(read).collect();
    cases.retain(|case| cfg!(feature = "cron") || !case.text.contains("cron = "));
    cases.sort_by(|a, b| a.file.cmp(&b.file));
    assert!(!cases.is_empty(), "{folder} has no cases");
    cases
}

fn read(file: PathBuf) -> Case {
    let text = fs::read_to_string(&file).expect("a case can be read");
    Case { file, text }
}

impl Case {
    /// Returns the path as the compiler shows it: relative to the folder of the cases.
    fn path(&self) -> String {
        let path = self.file.strip_prefix(FOLDER).expect("a case is in the folder of cases");
        path.display().to_string()
    }

    fn text(&self) -> &str {
        &self.text
    }

    fn expectation(&self) -> PathBuf {
        self.file.with_extension("stderr")
    }

    /// Returns the expected text. A new case has none yet.
    fn expected(&self) -> String {
        fs::read_to_string(self.expectation()).unwrap_or_default()
    }
}

/// The note of the compiler below an error at the whole attribute.
const ORIGIN: &str = "this error originates in the attribute macro `rate_limit` (in Nightly builds, run with \
                      -Z macro-backtrace for more info)";

fn diagnostics(case: &Case) -> String {
    let file: TokenStream = case.text().parse().expect("a case consists of tokens");
    let reports: Vec<_> = annotated::items(file).into_iter().flat_map(|item| reports(case, item)).collect();
    reports.join("\n")
}

fn reports(case: &Case, annotated: Annotated) -> Vec<String> {
    let Annotated { arguments, item, attribute } = annotated;
    let errors = try_limit(&arguments, &item).err();
    errors.into_iter().flatten().map(|error| report(case, &error, attribute.clone())).collect()
}

fn report(case: &Case, error: &syn::Error, attribute: Range<usize>) -> String {
    let message = error.to_string();
    let path = case.path();
    let place = error.span().byte_range();
    // An error at the whole attribute has an empty span.
    let whole = place.is_empty();
    let annotation = AnnotationKind::Primary.span(if whole { attribute } else { place });
    let snippet = Snippet::source(case.text()).path(&path).annotation(annotation);
    let group = Level::ERROR.primary_title(&message).element(snippet);
    let group = if whole { group.element(Level::NOTE.message(ORIGIN)) } else { group };
    let rendered = Renderer::plain().render(&[group]);
    rendered.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}
