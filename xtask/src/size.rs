//! How large the project is: what a reader has to take in, and what a newcomer compiles.
//!
//! A line of code is neither blank nor a comment, nor of a test: files and items under `#[cfg(test)]` do not count.

mod heart;

use std::collections::BTreeSet;
use std::process::Command;

use crate::package::LIBRARY;
use crate::source::{self, SourceFile};
use crate::step::{self, Outcome, cargo, output};
use crate::type_names::SharedNames;

/// The programs, by their roots.
const PROGRAMS: [&str; 2] = ["cli/src/main.rs", "xtask/src/main.rs"];

/// The scripts and their parts.
const SCRIPTS: [&str; 2] = [":(glob)lua/*.lua", ":(glob)lua/parts/*.lua"];

/// The examples whose lines that are there for their limits alone are counted, and what stands around these lines.
const GLUED: [&str; 2] = ["examples/web/service", "examples/web/gateway"];
const GLUE: [&str; 2] = ["// Glue begins.", "// Glue ends."];

/// Prints all figures.
pub(crate) fn print() -> Outcome {
    println!("{:<50}{:>8}{:>8}", "without tests", "lines", "files");
    let library = LIBRARY.map(|krate| source::read(&format!("{krate}/src/lib.rs")));
    let library = library.into_iter().collect::<Result<Vec<_>, _>>()?;
    let scripts = files(&SCRIPTS)?;
    let scripts = [scripts.iter().map(|text| lines_of_lua(text)).sum(), scripts.len()];
    let sizes: Vec<_> = library.iter().map(|krate| size(krate)).collect();
    let total = sizes.iter().fold(scripts, |sum, size| [sum[0] + size[0], sum[1] + size[1]]);
    for (krate, size) in LIBRARY.iter().zip(sizes) {
        row(&format!("  {krate}/src"), size);
    }
    row("  lua/*.lua", scripts);
    row("the library", total);
    for program in PROGRAMS {
        row(program.trim_end_matches("/main.rs"), size(&source::read(program)?));
    }
    println!();
    for (name, value) in heart::figures(&library) {
        figure(name, value);
    }

    let shared: Vec<_> = SharedNames::read()?.findings().collect();
    figure("type names that several files declare", shared.len());
    for finding in shared {
        println!("    {finding}");
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
    for example in GLUED {
        figure(&format!("lines of glue in {example}"), glue(example)?);
    }
    let metadata = output(&mut cargo("metadata --no-deps --format-version 1"))?;
    figure("binaries of integration tests", metadata.matches("\"kind\":[\"test\"]").count());
    let tree = output(&mut cargo("tree -p tallygate-examples -e normal,build,dev --prefix none --format {p}"))?;
    let crates: BTreeSet<Vec<_>> = tree.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
    figure("crates that the quickstart compiles", crates.iter().filter(|name| !name.is_empty()).count());
    Ok(())
}

/// The lines and the files of a crate.
fn size(krate: &[SourceFile]) -> [usize; 2] {
    [krate.iter().map(|file| file.lines.len()).sum(), krate.len()]
}

fn row(name: &str, [lines, files]: [usize; 2]) {
    println!("{name:<50}{lines:>8}{files:>8}");
}

fn figure(name: &str, value: usize) {
    println!("{name:<50}{value:>8}");
}

/// Returns the contents of the files that git knows by these patterns.
fn files(patterns: &[&str]) -> Result<Vec<String>, String> {
    let listed = output(Command::new("git").arg("ls-files").args(patterns).current_dir(step::root()))?;
    listed.lines().map(step::read).collect()
}

/// Counts the glue of an example: attributes, handlers and the file of limits are none.
fn glue(example: &str) -> Result<usize, String> {
    files(&[&format!("{example}/src/*.rs")])?.iter().map(|text| lines_of_glue(text)).sum()
}

fn lines_of_glue(text: &str) -> Result<usize, String> {
    let [begins, ends] = GLUE;
    let lines = |(part, rest): (&str, &str)| (!rest.contains(ends)).then(|| source::lines(part.trim()).len());
    let parts = text.split(begins).skip(1).map(|part| part.split_once(ends).and_then(lines));
    parts.sum::<Option<_>>().ok_or_else(|| format!("`{begins}` needs one `{ends}` behind it"))
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
fn an_example_needs_little_glue() {
    let text = "a();\n    // Glue begins.\n\n    // Why.\n    b();\n    // Glue ends.\nc();\n";
    assert_eq!(lines_of_glue(text), Ok(1));
    assert!(lines_of_glue(&text.replace("ends", "begins")).is_err());
    for (example, most) in GLUED.into_iter().zip([20, 12]) {
        let lines = glue(example).unwrap();
        assert!((1..=most).contains(&lines), "{example}: {lines}");
    }
}
