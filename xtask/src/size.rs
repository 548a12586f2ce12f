//! How large the project is: what a reader has to take in, and what a newcomer compiles.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::source::{self, Line};
use crate::step::{self, Outcome, cargo, output};

/// The crates, by their roots.
const ROOTS: [&str; 6] = [
    "runtime/src/lib.rs",
    "rules/src/lib.rs",
    "macros/src/lib.rs",
    "lua/src/lib.rs",
    "cli/src/main.rs",
    "xtask/src/main.rs",
];

/// The scripts and their parts.
const SCRIPTS: [&str; 2] = [":(glob)lua/*.lua", ":(glob)lua/parts/*.lua"];

/// The whole service, and what stands around its lines that are there for its limits alone.
const SERVICE: &str = "examples/web/service/src/*.rs";
const GLUE: [&str; 2] = ["// Glue begins.", "// Glue ends."];

/// Where each type is declared, by name.
type Declared = BTreeMap<String, BTreeSet<String>>;

/// Prints all figures.
pub(crate) fn print() -> Outcome {
    println!("{:<50}{:>8}{:>8}", "", "lines", "files");
    let (mut visible, mut all) = (Declared::new(), Declared::new());
    for root in ROOTS {
        let folder = root.rsplit_once('/').map_or(root, |(folder, _)| folder);
        let sources = source::read(root)?;
        let lines: usize = sources.iter().map(|file| file.lines.len()).sum();
        println!("{folder:<50}{lines:>8}{:>8}", files(&[&format!("{folder}/*.rs")])?.len());
        for file in sources.iter().filter(|_| folder != "xtask/src") {
            for (name, is_visible) in types(&file.lines) {
                all.entry(name.to_owned()).or_default().insert(file.path.clone());
                visible.entry(name.to_owned()).or_default().extend(is_visible.then(|| file.path.clone()));
            }
        }
    }
    let scripts = files(&SCRIPTS)?;
    println!(
        "{:<50}{:>8}{:>8}\n",
        "lua/*.lua",
        scripts.iter().map(|text| lines_of_lua(text)).sum::<usize>(),
        scripts.len()
    );

    for declared in [&mut all, &mut visible] {
        declared.retain(|_, files| files.len() > 1);
    }
    figure("type names that several files declare", all.len());
    figure("  of these, visible outside of their files", visible.len());
    for (name, files) in visible {
        println!("    {name}: {}", files.into_iter().collect::<Vec<_>>().join(", "));
    }
    let of_redis = |line: &&str| line.contains("cfg") && line.contains("feature = \"redis\"");
    let runtime = files(&["runtime/src/*.rs"])?;
    figure(
        "`cfg` lines for the feature `redis`",
        runtime.iter().flat_map(|text| text.lines()).filter(of_redis).count(),
    );
    for page in ["README.md", "README.zh-CN.md"] {
        figure(&format!("lines of {page}"), files(&[page])?.iter().map(|text| text.lines().count()).sum());
    }
    figure("lines of glue in examples/web/service", glue()?);
    let metadata = output(&mut cargo("metadata --no-deps --format-version 1"))?;
    figure("binaries of integration tests", metadata.matches("\"kind\":[\"test\"]").count());
    let tree = output(&mut cargo("tree -p tallygate-examples -e normal,build,dev --prefix none --format {p}"))?;
    let crates: BTreeSet<Vec<_>> = tree.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
    figure("crates that the quickstart compiles", crates.iter().filter(|name| !name.is_empty()).count());
    Ok(())
}

fn figure(name: &str, value: usize) {
    println!("{name:<50}{value:>8}");
}

/// Returns the contents of the files that git knows by these patterns.
fn files(patterns: &[&str]) -> Result<Vec<String>, String> {
    let listed = output(Command::new("git").arg("ls-files").args(patterns).current_dir(step::root()))?;
    listed.lines().map(step::read).collect()
}

/// Counts the glue of the whole service: attributes, handlers and the file of limits are none.
fn glue() -> Result<usize, String> {
    files(&[SERVICE])?.iter().map(|text| lines_of_glue(text)).sum()
}

fn lines_of_glue(text: &str) -> Result<usize, String> {
    let [begins, ends] = GLUE;
    let lines = |(part, rest): (&str, &str)| (!rest.contains(ends)).then(|| source::lines(part.trim()).len());
    let parts = text.split(begins).skip(1).map(|part| part.split_once(ends).and_then(lines));
    parts.sum::<Option<_>>().ok_or_else(|| format!("`{begins}` needs one `{ends}` behind it"))
}

/// Returns the types of a file, and whether other files may name them.
fn types(lines: &[Line]) -> impl Iterator<Item = (&str, bool)> {
    lines.iter().filter_map(|line| {
        let (keyword, rest) = line.code.split_once(' ')?;
        let name = rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()?;
        // Others are the types of a trait.
        let is_own = ["struct", "enum", "trait", "union"].contains(&keyword) || keyword == "type" && line.is_public;
        (is_own && !name.is_empty()).then_some((name, line.is_public))
    })
}

/// Counts lines that are neither blank nor comments.
fn lines_of_lua(text: &str) -> usize {
    let mut in_block = false;
    let is_code = |line: &&str| {
        let is_comment = in_block || line.starts_with("--");
        in_block = (in_block || line.starts_with("--[[")) && !line.contains("]]");
        !is_comment && !line.is_empty()
    };
    text.lines().map(str::trim).filter(is_code).count()
}

#[test]
fn neither_comments_nor_blank_lines_of_a_script_count() {
    assert_eq!(lines_of_lua("--[[ Head.\n  More. ]]\n\nlocal a = 1 -- one\n-- two\nreturn a\n"), 2);
}

#[test]
fn a_whole_service_needs_little_glue() {
    let text = "a();\n    // Glue begins.\n\n    // Why.\n    b();\n    // Glue ends.\nc();\n";
    assert_eq!(lines_of_glue(text), Ok(1));
    assert!(lines_of_glue(&text.replace("ends", "begins")).is_err());
    let lines = glue().unwrap();
    assert!((1..=25).contains(&lines), "{lines}");
}

#[test]
fn types_are_told_apart_by_who_may_name_them() {
    let text = "pub(in crate::a) struct A<T>;\nenum B {}\nimpl C for B {\n    type D = u8;\n}\npub type E = A;\n";
    assert_eq!(types(&source::lines(text)).collect::<Vec<_>>(), [("A", true), ("B", false), ("E", true)]);
}
