use super::{CrateLayers, findings};
use crate::source::read_with;

/// Returns the findings in a crate of three layers, whose files are given by their paths in `src`. Files of the layers
/// that are not given are empty. Each statement is a line.
fn findings_in(files: &[(&str, &str)]) -> Vec<String> {
    let table = "src/lib.rs only re-exports\n  asking       asks\n  answer       answers\n  clock count  counts";
    let root = ("lib.rs", "mod answer; mod asking; mod clock; mod count;");
    let empty = ["answer.rs", "asking.rs", "clock.rs", "count.rs"].map(|path| (path, ""));
    findings_by(table, &[files, &[root], &empty].concat())
}

/// Returns the findings in a crate, given its layers and its files.
fn findings_by(table: &str, files: &[(&str, &str)]) -> Vec<String> {
    let krate = CrateLayers::read(table);
    let load = |path: &str| {
        let file = files.iter().find(|(name, _)| path.strip_prefix("src/") == Some(name));
        file.map(|(_, text)| text.replace("; ", ";\n")).ok_or_else(|| format!("cannot read {path}"))
    };
    findings(&krate, &read_with(krate.root, &load).unwrap())
}

#[test]
fn imports_from_lower_layers_and_from_the_same_layer_are_allowed() {
    let files = [
        ("asking.rs", "use crate::answer::Answer; fn ask() -> Answer { crate::clock::now() }"),
        ("answer.rs", "pub struct Answer(super::count::Count);"),
        ("count.rs", "pub struct Count; use crate::clock::{self, now}; fn at() { clock::now() }"),
        ("clock.rs", "pub fn now() {}"),
    ];
    assert_eq!(findings_in(&files), [""; 0]);
}

#[test]
fn an_upward_import_is_reported_with_its_place_in_a_use_and_in_code() {
    let use_of_all = "//! Answers.\n\nuse std::fmt;\nuse crate::{\n    asking::{self, Ask},\n    count::Count,\n};";
    for (code, line, path) in [
        ("//! Answers.\n\nuse crate::asking::Ask;", 3, "asking::Ask"),
        (use_of_all, 4, "asking"),
        ("pub(crate) use super::asking::{Ask as Other};", 1, "asking::Ask"),
        ("#[cfg(feature = \"redis\")]\nuse crate::asking;", 2, "asking"),
        ("fn f() { 1 + crate::asking::ask(); }", 1, "asking::ask"),
        ("struct S {\n field: Vec<super::asking::Ask> }", 2, "asking::Ask"),
        ("fn f() { println!(\"{}\", crate::asking::ask()); }", 1, "asking::ask"),
    ] {
        let place = format!("src/answer.rs:{line}: imports `crate::{path}` (src/asking.rs)");
        let expected = format!("{place}: its layer is above this one");
        assert_eq!(findings_in(&[("answer.rs", code)]), [expected], "{code}");
    }
}

#[test]
fn what_is_no_code_of_this_crate_is_no_import() {
    for code in [
        "#[cfg(test)]\nmod tests {\n    use crate::asking::Ask;\n}",
        "#[cfg(all(test, feature = \"redis\"))]\nuse crate::asking::Ask;",
        "#[test]\nfn f() {\n    crate::asking::ask();\n}",
        "struct S;\nimpl S {\n    #[cfg(test)]\n    fn f() {\n        crate::asking::ask();\n    }\n}",
        "/// See [`ask`](crate::asking::ask).\nfn f() {}",
        "// crate::asking::ask()\n$crate::asking::ask()",
        "pub(in crate::asking) struct S;",
        "use ::other::asking::Ask; fn f() { other::asking::ask(); }",
    ] {
        assert_eq!(findings_in(&[("answer.rs", code)]), [""; 0], "{code}");
    }
}

#[test]
fn a_circle_without_upward_imports_is_reported_with_each_import() {
    let files = [
        ("answer.rs", "use crate::asking;"),
        ("asking.rs", "use crate::answer;"),
        ("clock.rs", "mod cell; use crate::count::Count;\npub struct Clock;"),
        ("count.rs", "pub struct Count;\nfn count(_: super::clock::cell::Cell) {}"),
        ("clock/cell.rs", "use super::Clock;"),
    ];
    let upward = "src/answer.rs:1: imports `crate::asking` (src/asking.rs): its layer is above this one";
    let circle = "\
these files import each other in a circle:
    src/clock.rs:2: imports `crate::count::Count` (src/count.rs)
    src/count.rs:2: imports `crate::clock::cell::Cell` (src/clock/cell.rs)
    src/clock/cell.rs:1: imports `crate::clock::Clock` (src/clock.rs)";
    assert_eq!(findings_in(&files), [upward, circle]);
}

#[test]
fn a_reexport_leads_to_the_file_that_defines_the_item() {
    let files = [
        (
            "count.rs",
            "mod cell; mod tally; pub use self::cell::Cell; pub(crate) use tally::Tally; pub const MOST: u8 = 9;",
        ),
        ("count/cell.rs", "use super::{MOST, Tally};\npub struct Cell;"),
        ("count/tally.rs", "use crate::count::Cell as Other;\npub struct Tally;"),
    ];
    let expected = "\
these files import each other in a circle:
    src/count/cell.rs:1: imports `crate::count::Tally` (src/count/tally.rs)
    src/count/tally.rs:1: imports `crate::count::Cell` (src/count/cell.rs)";
    assert_eq!(findings_in(&files), [expected]);
}

#[test]
fn a_module_that_uses_what_it_reexports_imports_its_child() {
    for (using, circles) in [
        ("fn cell() {}", 0),
        ("struct S { a: Cell }", 1),
        ("fn f() { cell::new(); }", 1),
        ("use cell::new;", 1),
        ("fn f() { new(); }", 1),
        ("fn f() { a.new(); other::new(); }", 0),
    ] {
        let parent = format!("mod cell; pub use self::cell::{{Cell, new}}; pub struct Size; {using}");
        let found = findings_in(&[("count.rs", &parent), ("count/cell.rs", "use super::Size;")]);
        assert!(
            found.len() == circles && found.iter().all(|found| found.contains("in a circle")),
            "{using}: {found:?}"
        );
    }
}

#[test]
fn mistakes_of_the_root_are_reported() {
    let root = "mod answer; mod asking; mod count; mod other;\npub fn f() {}\n#[cfg(test)]\nfn g() {}\npub use elsewhere::Rule;";
    let expected = [
        "src/lib.rs:5: the root holds modules, re-exports and documentation only; remedy: move this item",
        "src/lib.rs: `other` has no layer; remedy: name it in xtask/layers.txt",
        "src/lib.rs: there is no `clock`; remedy: remove it from xtask/layers.txt",
        "src/asking.rs:1: imports `crate::Rule` (src/lib.rs): the root only re-exports it; remedy: the path by its module",
    ];
    assert_eq!(findings_in(&[("lib.rs", root), ("other.rs", ""), ("asking.rs", "use crate::Rule;")]), expected);
}

#[test]
fn what_only_one_module_takes_from_the_system_is_reported_elsewhere() {
    let root = "mod system; mod clock;";
    let load = |clock: &str| {
        let clock = clock.to_owned();
        move |path: &str| match path {
            "src/lib.rs" => Ok(root.replace("; ", ";\n")),
            "src/clock.rs" => Ok(clock.clone()),
            _ => Ok("use std::time::Instant;".to_owned()),
        }
    };
    for (code, taken) in [
        ("use std::time::{Duration, Instant};", Some("std::time::Instant")),
        ("fn f() {\n    tokio::time::sleep(pause);\n}", Some("tokio::time::sleep")),
        ("fn f() { SystemTime::now() }", Some("SystemTime::now")),
        ("use crate::system::{Instant, RandomState};\nuse std::time::{Duration, SystemTime};", None),
        ("#[cfg(test)]\nmod tests {\n    use tokio::time::sleep;\n}", None),
    ] {
        let krate = CrateLayers::read("src/lib.rs");
        let found = findings(&krate, &read_with(krate.root, &load(code)).unwrap());
        assert_eq!(found.len(), usize::from(taken.is_some()), "{code}: {found:?}");
        assert!(taken.is_none_or(|taken| found[0].contains(taken)), "{code}: {found:?}");
    }
}

#[test]
fn a_layer_before_a_store_knows_no_other_and_no_kind_of_store() {
    let table = "src/lib.rs only re-exports\n  limiter  decides\n  store    keeps tallies";
    for (code, found) in [
        ("mod tests; use self::tests::Stub; use crate::store::Store;", None),
        ("use crate::limiter::core::Core;", Some("limiter::core::Core` (src/limiter/core.rs)")),
        ("use super::core::Core;", Some("limiter::core::Core` (src/limiter/core.rs)")),
        ("use crate::store::memory::Memory;", Some("store::memory::Memory` (src/store/memory.rs)")),
        ("use crate::store::Memory;", Some("store::Memory` (src/store/memory.rs)")),
    ] {
        let files = [
            ("lib.rs", "mod limiter; mod store;"),
            ("limiter.rs", "mod core; mod outage;"),
            ("limiter/core.rs", "pub struct Core; use super::outage::Outage;"),
            ("limiter/outage.rs", code),
            ("limiter/outage/tests.rs", "pub struct Stub;"),
            ("store.rs", "mod memory; pub use self::memory::Memory; pub struct Store;"),
            ("store/memory.rs", "pub struct Memory;"),
        ];
        let findings = findings_by(table, &files);
        let found = found.map(|found| {
            format!("src/limiter/outage.rs:1: imports `crate::{found}: a layer before a store knows no other, and no kind of store")
        });
        assert_eq!(
            findings.into_iter().filter(|finding| !finding.contains("circle")).collect::<Vec<_>>(),
            Vec::from_iter(found),
            "{code}"
        );
    }
}

#[test]
fn a_module_that_decides_calls_before_a_store_is_listed() {
    let table = "src/lib.rs only re-exports\n  limiter  decides";
    let code = "pub struct Logged; impl<S: Decider> Decider for Logged<S> { fn note(&self) {} }";
    let found_in = |module: &str| {
        let limiter = format!("mod {module};");
        let path = format!("limiter/{module}.rs");
        findings_by(table, &[("lib.rs", "mod limiter;"), ("limiter.rs", &limiter), (&path, code)])
    };
    assert_eq!(found_in("outage"), [""; 0]);
    let remedy = "decides calls for a store below it; remedy: name its module in `BEFORE_STORES` of xtask";
    assert_eq!(found_in("slow"), [format!("src/limiter/slow.rs: {remedy}")]);
}
