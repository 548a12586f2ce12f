//! Which file of a crate imports which, by the paths in its code that is not for tests alone.
//!
//! A path counts where it begins with `crate`, `self`, `super` or a child of the module. It leads to the file of the module
//! that it names, or, where that module has the item by a `use`, to where that one leads. A module that re-exports what its
//! own children define does not import it, unless it uses it, too. What macros make and what `*` brings is not seen.

use std::collections::BTreeMap;

use crate::source::{SourceFile, Token};

/// No chain of re-exports is longer, unless it is a circle.
const LONGEST_CHAIN: usize = 16;

/// An import of one file by another, as it is first written.
#[derive(Clone, PartialEq)]
pub(super) struct Import {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Whether it names what the root only re-exports.
    pub(super) is_from_root: bool,
    pub(super) line: usize,
    pub(super) path: String,
}

/// A path in a file, from the root of the crate on, or nothing where it leads out of it.
struct Mention<'a> {
    path: Option<Vec<&'a str>>,
    line: usize,
    /// What it brings if it stands in a `use`.
    name: Option<&'a str>,
    /// Whether the file passes that on and has no use for it.
    is_reexport: bool,
}

/// Returns every pair of files of which one imports the other.
pub(super) fn imports(files: &[SourceFile]) -> Vec<Import> {
    let mentions: Vec<_> = files.iter().map(mentions).collect();
    let names = Names::new(files, &mentions);
    let mut found = BTreeMap::new();
    for (from, mention) in mentions.iter().enumerate().flat_map(|(from, all)| all.iter().map(move |one| (from, one))) {
        let Some(path) = &mention.path else { continue };
        let to = names.resolve(path, LONGEST_CHAIN);
        let is_passed_on = mention.is_reexport && files[to].module.starts_with(&files[from].module);
        if from != to && !is_passed_on {
            let is_from_root = from != 0 && names.only_reexports(path);
            let import = Import { from, to, is_from_root, line: mention.line, path: path.join("::") };
            found.entry((from, to, is_from_root)).or_insert(import);
        }
    }
    found.into_values().collect()
}

/// What the modules of a crate are, and what their `use`s bring.
struct Names<'a> {
    modules: BTreeMap<Vec<&'a str>, usize>,
    brought: BTreeMap<(usize, &'a str), Option<&'a [&'a str]>>,
}

impl<'a> Names<'a> {
    fn new(files: &'a [SourceFile], mentions: &'a [Vec<Mention<'a>>]) -> Self {
        let modules = files
            .iter()
            .enumerate()
            .map(|(file, source)| (source.module.iter().map(|name| &**name).collect(), file))
            .collect();
        let mut brought = BTreeMap::new();
        for (file, mention) in
            mentions.iter().enumerate().flat_map(|(file, all)| all.iter().map(move |one| (file, one)))
        {
            brought.extend(mention.name.map(|name| ((file, name), mention.path.as_deref())));
        }
        Self { modules, brought }
    }

    /// Whether a path begins with what the root has by a `use` alone.
    fn only_reexports(&self, path: &[&str]) -> bool {
        path.first().is_some_and(|name| self.brought.contains_key(&(0, name))) && !self.modules.contains_key(&path[..1])
    }

    /// Returns the file to which a path leads.
    fn resolve(&self, path: &[&str], longest: usize) -> usize {
        let within = (0..=path.len()).rev().find_map(|end| Some((end, *self.modules.get(&path[..end])?)));
        let (end, file) = within.unwrap_or_default();
        match path.get(end).and_then(|name| *self.brought.get(&(file, name))?) {
            Some(further) if longest > 0 => self.resolve(&[further, &path[end + 1..]].concat(), longest - 1),
            _ => file,
        }
    }
}

/// Returns all paths of a file.
fn mentions(file: &SourceFile) -> Vec<Mention<'_>> {
    let is_use = |pair: &[Token]| pair[0].text == "use" && pair[1].text != "<";
    let statements = file.tokens.split_inclusive(|token| token.text == ";");
    // The code before a `use`, and what follows that word.
    let parted = statements.map(|all| all.split_at(all.windows(2).position(is_use).unwrap_or(all.len())));
    let parted: Vec<_> = parted.collect();
    let mut mentions = Vec::new();
    for (code, used) in &parted {
        let paths = paths(code).into_iter().map(|(path, line)| (path, line, None, false));
        let is_visible = code.last().is_some_and(|token| ["pub", ")"].contains(&&*token.text));
        let names = names(used).into_iter().map(|(path, line, name)| {
            (path, line, Some(name), is_visible && !parted.iter().any(|(code, _)| has_name(code, name)))
        });
        mentions.extend(names.chain(paths).map(|(path, line, name, is_reexport)| Mention {
            path: absolute(file, &path),
            line,
            name,
            is_reexport,
        }));
    }
    mentions
}

/// Returns what a `use` brings: its path, its line and its name.
fn names(tokens: &[Token]) -> Vec<(Vec<&str>, usize, &str)> {
    let mut names = Vec::new();
    // The paths before the open brackets, and the path that is being read.
    let mut prefixes = vec![Vec::new()];
    let (mut path, mut name) = (Vec::new(), None);
    for (before, token) in [None].into_iter().chain(tokens.iter().map(Some)).zip(tokens) {
        match &*token.text {
            "use" | ":" | "as" => {}
            "{" => {
                prefixes.push(path.clone());
                name = None;
            }
            end @ ("," | "}" | ";") => {
                names.extend(name.take().map(|name| (path.clone(), token.lines.0, name)));
                if end == "}" {
                    prefixes.pop();
                }
                path = prefixes.last().cloned().unwrap_or_default();
            }
            // `a::{self}` brings `a`.
            "self" if !path.is_empty() => name = path.last().copied(),
            text => {
                name = Some(text);
                if before.is_none_or(|before| before.text != "as") {
                    path.push(text);
                }
            }
        }
    }
    names
}

/// Returns the paths of several names in code, with their lines.
fn paths(code: &[Token]) -> Vec<(Vec<&str>, usize)> {
    // `pub(in crate::a)` imports nothing.
    let is_visibility = |at: usize| at > 1 && text(code, at - 1) == "in" && text(code, at - 2) == "(";
    let begins = |at: &usize| is_separator(code, at + 1) && is_alone(code, *at) && !is_visibility(*at);
    let path = |at: usize| {
        let further = (at + 3..).step_by(3).take_while(|next| is_separator(code, next - 2));
        ([at].into_iter().chain(further).map(|at| text(code, at)).collect(), code[at].lines.0)
    };
    (0..code.len()).filter(begins).map(path).collect()
}

/// Tells whether code has a type, or calls a function, of that name without a path.
fn has_name(code: &[Token], name: &str) -> bool {
    let is_used = |at: usize| name.starts_with(char::is_uppercase) || text(code, at + 1) == "(";
    (0..code.len()).any(|at| code[at].text == name && is_alone(code, at) && is_used(at))
}

/// Tells whether no path leads to a name, and nothing else makes it another than that of the module.
fn is_alone(code: &[Token], at: usize) -> bool {
    at == 0 || !(["fn", "."].contains(&text(code, at - 1)) || at > 1 && is_separator(code, at - 2))
}

fn is_separator(code: &[Token], at: usize) -> bool {
    text(code, at) == ":" && text(code, at + 1) == ":"
}

fn text(code: &[Token], at: usize) -> &str {
    code.get(at).map_or("", |token| &*token.text)
}

/// Returns a path from the root of the crate on, or nothing where it leads out of it.
fn absolute<'a>(file: &'a SourceFile, path: &[&'a str]) -> Option<Vec<&'a str>> {
    let (first, mut rest) = path.split_first()?;
    let mut absolute: Vec<_> = file.module.iter().map(|name| &**name).collect();
    match *first {
        "crate" => absolute.clear(),
        "self" => {}
        "super" => drop(absolute.pop()),
        child if file.children().any(|known| known == child) => absolute.push(child),
        _ => return None,
    }
    while let ["super", after @ ..] = rest {
        absolute.pop();
        rest = after;
    }
    absolute.extend(rest);
    Some(absolute)
}
