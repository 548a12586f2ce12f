//! The names of types: no two files declare types of one name, in whichever crates they are.

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
pub(crate) struct SharedNames(Declared);

impl SharedNames {
    pub(crate) fn read() -> Result<Self, String> {
        let mut names = Self(Declared::new());
        for root in ROOTS {
            for file in source::read(root)?.iter().filter(|file| !file.path.starts_with(SIMULATED)) {
                names.add(&file.path, &file.lines);
            }
        }
        Ok(names)
    }

    fn add(&mut self, path: &str, lines: &[Line]) {
        for name in types(lines) {
            self.0.entry(name.to_owned()).or_default().insert(path.to_owned());
        }
    }

    /// Returns what is wrong.
    pub(crate) fn findings(self) -> impl Iterator<Item = String> {
        self.0.into_iter().filter(|(_, files)| files.len() > 1).map(|(name, files)| {
            let files = files.into_iter().collect::<Vec<_>>().join(", ");
            format!("{files}: each declares a type `{name}`; remedy: a name of its own for each, or one type for all")
        })
    }
}

/// Returns the names of the types of a file.
fn types(lines: &[Line]) -> impl Iterator<Item = &str> {
    lines.iter().filter_map(|line| {
        let (keyword, rest) = line.code.split_once(' ')?;
        let name = rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()?;
        let is_own = line.is_outermost && ["struct", "enum", "trait", "union", "type"].contains(&keyword);
        (is_own && !name.is_empty()).then_some(name)
    })
}

#[test]
fn a_type_of_an_implementation_is_none_of_its_file() {
    let text = "pub(in crate::a) struct A<T>;\nenum B {}\nimpl C for B {\n    type D = u8;\n}\ntype E = A;\n";
    assert_eq!(types(&source::lines(text)).collect::<Vec<_>>(), ["A", "B", "E"]);
}

#[test]
fn a_name_that_two_files_declare_is_found() {
    let mut names = SharedNames(Declared::new());
    names.add("a.rs", &source::lines("pub struct One;\npub(crate) enum Two {}\n"));
    names.add("b.rs", &source::lines("type Two = One;\n"));
    let found: Vec<_> = names.findings().collect();
    assert!(
        matches!(found.as_slice(), [two] if two.starts_with("a.rs, b.rs: each declares a type `Two`")),
        "{found:?}"
    );
}
