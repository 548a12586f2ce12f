//! The names of types: no two types that other files may name share a name, in whichever crates they are.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{self, Line};

/// The crates, by their roots.
const ROOTS: [&str; 5] =
    ["runtime/src/lib.rs", "rules/src/lib.rs", "macros/src/lib.rs", "lua/src/lib.rs", "cli/src/main.rs"];

/// A file replaces one of `system/real` in a simulated world, and has its names. A build contains one of the two.
const SIMULATED: &str = "runtime/src/system/world/";

/// The files in which each name is declared.
type Declared = BTreeMap<String, BTreeSet<String>>;

/// The names that several files declare.
pub(crate) struct SharedNames {
    /// Names of all types.
    pub(crate) all: Declared,
    /// Names of types that other files may name.
    pub(crate) visible: Declared,
}

impl SharedNames {
    pub(crate) fn read() -> Result<Self, String> {
        let mut names = Self { all: Declared::new(), visible: Declared::new() };
        for root in ROOTS {
            for file in source::read(root)?.iter().filter(|file| !file.path.starts_with(SIMULATED)) {
                names.add(&file.path, &file.lines);
            }
        }
        for declared in [&mut names.all, &mut names.visible] {
            declared.retain(|_, files| files.len() > 1);
        }
        Ok(names)
    }

    fn add(&mut self, path: &str, lines: &[Line]) {
        for (name, is_visible) in types(lines) {
            self.all.entry(name.to_owned()).or_default().insert(path.to_owned());
            if is_visible {
                self.visible.entry(name.to_owned()).or_default().insert(path.to_owned());
            }
        }
    }

    /// Returns what is wrong.
    pub(crate) fn findings(self) -> impl Iterator<Item = String> {
        self.visible.into_iter().map(|(name, files)| {
            let files = files.into_iter().collect::<Vec<_>>().join(", ");
            format!("{files}: each declares a type `{name}`; remedy: a name of its own for each, or one type for all")
        })
    }
}

/// Returns the types of a file, and whether other files may name them.
fn types(lines: &[Line]) -> impl Iterator<Item = (&str, bool)> {
    lines.iter().filter_map(|line| {
        let (keyword, rest) = line.code.split_once(' ')?;
        let name = rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()?;
        // A private `type` is an alias of one file, or belongs to a trait.
        let is_own = ["struct", "enum", "trait", "union"].contains(&keyword) || keyword == "type" && line.is_public;
        (is_own && !name.is_empty()).then_some((name, line.is_public))
    })
}

#[test]
fn types_are_told_apart_by_who_may_name_them() {
    let text = "pub(in crate::a) struct A<T>;\nenum B {}\nimpl C for B {\n    type D = u8;\n}\npub type E = A;\n";
    assert_eq!(types(&source::lines(text)).collect::<Vec<_>>(), [("A", true), ("B", false), ("E", true)]);
}

#[test]
fn a_name_that_two_files_make_visible_is_found() {
    let mut names = SharedNames { all: Declared::new(), visible: Declared::new() };
    names.add("a.rs", &source::lines("pub struct One;\npub(crate) enum Two {}\nstruct Three;\n"));
    names.add("b.rs", &source::lines("pub(super) struct Two;\npub struct Three;\n"));
    names.visible.retain(|_, files| files.len() > 1);
    let found: Vec<_> = names.findings().collect();
    assert!(
        matches!(found.as_slice(), [two] if two.starts_with("a.rs, b.rs: each declares a type `Two`")),
        "{found:?}"
    );
}
