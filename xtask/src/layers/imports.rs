//! Which file of a crate imports which, by the paths in its code that is not for tests alone.
//!
//! A path counts where it begins with `crate`, `self`, `super` or a child of the module. It leads to the file of the module
//! that it names, or, where that module has the item by a `use`, to where that one leads. A module that re-exports what its
//! own children define does not import it, unless it uses it, too. What macros make and what `*` brings is not seen.

use std::collections::BTreeMap;

use crate::source::SourceFile;

/// No chain of re-exports is longer, unless it is a circle.
const LONGEST_CHAIN: usize = 16;

/// An import of one file by another, as it is first written.
pub(super) struct Import {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Whether it names what the root only re-exports.
    pub(super) is_from_root: bool,
    pub(super) line: usize,
    pub(super) path: String,
}

/// A path in a file.
pub(super) struct Mention {
    /// As it is written, without braces.
    pub(super) text: String,
    /// From the root of the crate on, or nothing where it leads out of it.
    path: Option<Vec<String>>,
    pub(super) line: usize,
    /// What it brings if it stands in a `use`.
    name: Option<String>,
    /// Whether the file passes that on and has no use for it.
    is_reexport: bool,
}

/// Returns every pair of files of which one imports the other.
pub(super) fn imports(files: &[SourceFile]) -> Vec<Import> {
    let mentions: Vec<_> = files.iter().map(mentions).collect();
    let names = Names::new(files, &mentions);
    let mut found = BTreeMap::new();
    for (from, Mention { path, line, is_reexport, .. }) in all(&mentions) {
        let Some(path) = path else { continue };
        let to = names.resolve(path, LONGEST_CHAIN);
        let is_passed_on = *is_reexport && files[to].module.starts_with(&files[from].module);
        if from != to && !is_passed_on {
            let is_from_root = from != 0 && names.only_reexports(path);
            let import = Import { from, to, is_from_root, line: *line, path: path.join("::") };
            found.entry((from, to, is_from_root)).or_insert(import);
        }
    }
    found.into_values().collect()
}

fn all(mentions: &[Vec<Mention>]) -> impl Iterator<Item = (usize, &Mention)> {
    mentions.iter().enumerate().flat_map(|(file, all)| all.iter().map(move |one| (file, one)))
}

/// What the modules of a crate are, and what their `use`s bring.
struct Names<'a> {
    modules: BTreeMap<&'a [String], usize>,
    brought: BTreeMap<(usize, &'a str), Option<&'a [String]>>,
}

impl<'a> Names<'a> {
    fn new(files: &'a [SourceFile], mentions: &'a [Vec<Mention>]) -> Self {
        let modules = files.iter().zip(0..).map(|(source, file)| (&*source.module, file)).collect();
        let brought = all(mentions).filter_map(|(file, one)| Some(((file, one.name.as_deref()?), one.path.as_deref())));
        Self { modules, brought: brought.collect() }
    }

    /// Whether a path begins with what the root has by a `use` alone.
    fn only_reexports(&self, path: &[String]) -> bool {
        path.first().is_some_and(|name| self.brought.contains_key(&(0, name))) && !self.modules.contains_key(&path[..1])
    }

    /// Returns the file to which a path leads.
    fn resolve(&self, path: &[String], longest: usize) -> usize {
        let within = (0..=path.len()).rev().find_map(|end| Some((end, *self.modules.get(&path[..end])?)));
        let (end, file) = within.unwrap_or_default();
        match path.get(end).and_then(|name| *self.brought.get(&(file, name))?) {
            Some(further) if longest > 0 => self.resolve(&[further, &path[end + 1..]].concat(), longest - 1),
            _ => file,
        }
    }
}

/// Returns all paths of a file.
pub(super) fn mentions(file: &SourceFile) -> Vec<Mention> {
    let mut mentions = Vec::new();
    let (mut uses, mut code) = (Vec::new(), String::new());
    let mut lines = file.lines.iter();
    while let Some(line) = lines.next() {
        let Some(tree) = line.code.strip_prefix("use ") else {
            let words = line.code.split(|sign: char| !is_of_path(sign) && sign != '.' && sign != '$');
            mentions.extend(words.filter(|word| word.contains("::")).map(|word| Mention {
                text: word.to_owned(),
                path: absolute(file, word),
                line: line.number,
                name: None,
                is_reexport: false,
            }));
            code.extend([&*line.code, "\n"]);
            continue;
        };
        let mut tree = tree.to_owned();
        while !tree.ends_with(';') {
            tree.push_str(lines.next().map_or(";", |line| &line.code));
        }
        uses.extend(branches(tree.trim_end_matches(';')).into_iter().map(|branch| (branch, line)));
    }
    for (branch, line) in uses {
        let (path, renamed) = branch.split_once(" as ").unwrap_or((&branch, ""));
        // `a::{self}` brings `a`.
        let path = path.strip_suffix("::self").unwrap_or(path);
        let name = if renamed.is_empty() { path.rsplit("::").next().unwrap_or_default() } else { renamed };
        let is_reexport = line.is_public && !has_name(&code, name);
        mentions.push(Mention {
            text: path.to_owned(),
            path: absolute(file, path),
            line: line.number,
            name: Some(name.to_owned()),
            is_reexport,
        });
    }
    mentions
}

/// Returns the paths of a `use`, each without braces.
fn branches(tree: &str) -> Vec<String> {
    let Some((start, rest)) = tree.split_once('{') else { return vec![tree.to_owned()] };
    let mut depth = 0;
    let within = rest.strip_suffix('}').unwrap_or(rest).split(|sign| {
        depth += i32::from(sign == '{') - i32::from(sign == '}');
        sign == ',' && depth == 0
    });
    let within = within.map(str::trim).filter(|branch| !branch.is_empty());
    within.flat_map(branches).map(|branch| format!("{start}{branch}")).collect()
}

/// Tells whether code has a type, or calls a function, of that name without a path.
fn has_name(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + name.len()..]);
        let is_alone = !before.ends_with(|sign| is_of_path(sign) || sign == '.') && !before.ends_with("fn ");
        let is_called = name.starts_with(char::is_uppercase) || after.starts_with('(');
        is_alone && is_called && !after.starts_with(|sign: char| is_of_path(sign) && sign != ':')
    })
}

fn is_of_path(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_' || sign == ':'
}

/// Returns a path from the root of the crate on, or nothing where it leads out of it.
fn absolute(file: &SourceFile, path: &str) -> Option<Vec<String>> {
    let mut absolute = file.module.clone();
    for (at, word) in path.split("::").filter(|word| !word.is_empty() || path.starts_with("::")).enumerate() {
        match word {
            "crate" if at == 0 => absolute.clear(),
            "self" if at == 0 => {}
            "super" => drop(absolute.pop()),
            child if at > 0 || file.children().any(|known| known == child) => absolute.push(child.to_owned()),
            _ => return None,
        }
    }
    // A text may contain `crate::` alone.
    (!absolute.is_empty()).then_some(absolute)
}
