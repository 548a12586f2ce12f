use super::findings::findings;
use super::source::Source;
use super::table::{CrateLayers, Layer, RootRole};

const LAYERS: &[Layer] = &[
    Layer { name: "top", purpose: "asks", modules: &["asking"] },
    Layer { name: "middle", purpose: "answers", modules: &["answer"] },
    Layer { name: "bottom", purpose: "counts", modules: &["clock", "count"] },
];

/// Returns the findings in a crate of three layers, whose files are given by their paths in `src`. Files of the layers
/// that are not given are empty.
fn findings_in(files: &[(&str, &str)]) -> Vec<String> {
    let root = "mod answer; mod asking; mod clock; mod count;";
    let empty = LAYERS.iter().flat_map(|layer| layer.modules).map(|module| (format!("{module}.rs"), ""));
    let written = files.iter().map(|&(path, text)| (path.to_owned(), text));
    let files: Vec<_> = written.chain([("lib.rs".to_owned(), root)]).chain(empty).collect();
    let load = |path: &str| {
        let path = path.strip_prefix("src/")?;
        files.iter().find(|(name, _)| name == path).map(|(_, text)| (*text).to_owned())
    };
    let krate = CrateLayers { name: "small", root: "src/lib.rs", root_role: RootRole::Facade, layers: LAYERS };
    findings(&krate, &Source::read(krate.root, &load).unwrap())
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
fn an_upward_import_is_reported_with_its_place_and_both_layers() {
    let files = [("asking.rs", "pub struct Ask;"), ("count.rs", "//! Counts.\n\nuse crate::asking::Ask;")];
    let expected = "src/count.rs:3: imports `crate::asking::Ask` (src/asking.rs): the layer `top` is above `bottom`";
    assert_eq!(findings_in(&files), [expected]);
}

#[test]
fn a_path_in_code_is_an_import() {
    let cases = [
        "fn f() { crate::asking::ask(); }",
        "fn f() { use crate::asking::ask; ask(); }",
        "struct S { field: Vec<super::asking::Ask> }",
        "fn f() { println!(\"{}\", 1 + crate::asking::ask()); }",
        "impl crate::asking::Trait for S {}",
        "mod inline { use super::super::asking::Ask; }",
    ];
    for code in cases {
        let found = findings_in(&[("asking.rs", "pub fn ask() {}"), ("answer.rs", code)]);
        assert!(found.len() == 1 && found[0].contains("the layer `top` is above `middle`"), "{code}: {found:?}");
    }
}

#[test]
fn what_is_no_code_of_this_crate_is_no_import() {
    let cases = [
        "#[cfg(test)] mod tests { use crate::asking::Ask; }",
        "#[cfg(all(test, feature = \"redis\"))] use crate::asking::Ask;",
        "#[test] fn f() { crate::asking::ask(); }",
        "struct S; impl S { #[cfg(test)] fn f() { crate::asking::ask(); } }",
        "/// See [`ask`](crate::asking::ask).\nfn f() {}",
        "fn f() { quote! { crate::asking::ask() } }",
        "pub(in crate::asking) struct S;",
        "use ::other::asking::Ask; fn f() { other::asking::ask(); }",
    ];
    for code in cases {
        assert_eq!(findings_in(&[("asking.rs", "pub fn ask() {}"), ("answer.rs", code)]), [""; 0], "{code}");
    }
}

#[test]
fn code_of_some_builds_is_an_import_like_any_other() {
    for condition in ["feature = \"redis\"", "any(test, feature = \"redis\")", "not(test)"] {
        let code = format!("#[cfg({condition})] use crate::asking::Ask;");
        assert_eq!(findings_in(&[("answer.rs", &code)]).len(), 1, "{condition}");
    }
}

#[test]
fn a_circle_of_two_files_is_reported_with_both_imports() {
    let files = [
        ("clock.rs", "use crate::count::Count;\npub struct Clock;"),
        ("count.rs", "pub struct Count;\nfn count(_: super::clock::Clock) {}"),
    ];
    let expected = "\
small: these files import each other in a circle:
    src/clock.rs:1: imports `crate::count::Count` (src/count.rs)
    src/count.rs:2: imports `super::clock::Clock` (src/clock.rs)";
    assert_eq!(findings_in(&files), [expected]);
}

#[test]
fn a_reexport_leads_to_the_file_that_defines_the_item() {
    let files = [
        ("count.rs", "mod cell; mod tally; pub use self::cell::Cell; pub use self::tally::*;"),
        ("count/cell.rs", "use super::Tally;\npub struct Cell;"),
        ("count/tally.rs", "use crate::count::Cell as Other;\npub struct Tally;"),
    ];
    let expected = "\
small: these files import each other in a circle:
    src/count/cell.rs:1: imports `super::Tally` (src/count/tally.rs)
    src/count/tally.rs:1: imports `crate::count::Cell` (src/count/cell.rs)";
    assert_eq!(findings_in(&files), [expected]);
}

#[test]
fn a_module_that_only_reexports_its_children_does_not_import_them() {
    let files = [
        (
            "count.rs",
            "mod cell; mod tally; pub use self::cell::Cell; pub(crate) use tally::Tally; pub const MOST: u8 = 9;",
        ),
        ("count/cell.rs", "use super::MOST; pub struct Cell;"),
        ("count/tally.rs", "use super::Cell; use crate::count; pub struct Tally;"),
    ];
    assert_eq!(findings_in(&files), [""; 0]);
}

#[test]
fn a_module_that_uses_what_it_reexports_imports_its_child() {
    for using in ["fn f() -> Cell { todo!() }", "fn f() { cell::new(); }", "use cell::new;", "fn f() { new(); }"] {
        let parent = format!("mod cell; pub use self::cell::{{Cell, new}}; pub struct Size; {using}");
        let found = findings_in(&[
            ("count.rs", &parent),
            ("count/cell.rs", "use super::Size; pub struct Cell; pub fn new() {}"),
        ]);
        assert!(found.len() == 1 && found[0].contains("in a circle"), "{using}: {found:?}");
    }
}

#[test]
fn an_import_from_the_root_is_reported_with_the_path_by_module() {
    let root = "mod answer; mod asking; mod clock; mod count; pub use count::Count; pub use elsewhere::Rule;";
    let files = [("lib.rs", root), ("asking.rs", "use crate::{Count, Rule};"), ("count.rs", "pub struct Count;")];
    let expected = [
        "src/asking.rs:1: imports `crate::Count` from the root; remedy: `crate::count::Count`",
        "src/asking.rs:1: imports `crate::Rule` from the root; remedy: `elsewhere::Rule`",
    ];
    assert_eq!(findings_in(&files), expected);
}

#[test]
fn code_in_the_root_and_modules_without_a_layer_are_reported() {
    let root = "mod answer; mod asking; mod count;\nmod other { }\npub fn f() {}\n#[cfg(test)] fn g() {}";
    let expected = [
        "src/lib.rs:3: the root holds modules, re-exports and documentation only; remedy: move this item",
        "small: `other` has no layer; remedy: name it in xtask/src/layers/table.rs",
        "small: there is no module `clock`; remedy: remove it from xtask/src/layers/table.rs",
    ];
    assert_eq!(findings_in(&[("lib.rs", root)]), expected);
}
