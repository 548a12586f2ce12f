//! No import runs upward, and no files import each other in a circle: see [`mod@imports`] for what an import is.

mod imports;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use self::imports::{Import, Mention, imports, mentions};
use crate::source::{self, SourceFile};
use crate::step::{self, Outcome};
use crate::type_names::SharedNames;

/// The layers of each crate. A new module of a crate's root gets its layer there.
const TABLE: &str = "xtask/layers.txt";

/// How items begin that are more than a module or a re-export.
const ITEMS: [&str; 9] = ["fn", "struct", "enum", "union", "trait", "impl", "const", "static", "macro_rules!"];

/// The module by which alone a crate that has it takes from the system, so that a simulated world can replace that.
const SYSTEM: &str = "system";

/// What that is: parts of paths.
const OF_SYSTEM: [&str; 12] = [
    "fastrand",
    "hash::RandomState",
    "hash_map::RandomState",
    "quality::RandomState",
    "runtime::Handle",
    "std::thread",
    "std::time::Instant",
    "SystemTime::now",
    "task::JoinSet",
    "tokio::net",
    "tokio::spawn",
    "tokio::time",
];

/// The modules that a call passes before a store decides it. Each can be tested without the others.
const BEFORE_STORES: [[&str; 2]; 5] = [
    ["limiter", "overrides"],
    ["limiter", "outage"],
    ["limiter", "prefetch"],
    ["limiter", "cached_denials"],
    ["limiter", "leases"],
];

/// The stores of one kind, which none of these modules knows.
const STORES: [[&str; 2]; 2] = [["store", "memory"], ["store", "redis"]];

/// A crate whose imports are checked.
struct CrateLayers<'a> {
    /// Its file, from the root of the workspace.
    root: &'a str,
    /// Whether the root has no code of its own.
    only_reexports: bool,
    /// The modules of each layer, highest first.
    layers: Vec<Vec<&'a str>>,
}

impl<'a> CrateLayers<'a> {
    /// Reads a crate of the table: its root, and a line for each layer, with at least two spaces before its purpose.
    fn read(text: &'a str) -> Self {
        let (first, layers) = text.split_once('\n').unwrap_or((text, ""));
        let (root, note) = first.split_once(' ').unwrap_or((first, ""));
        let modules = |line: &'a str| line.trim().split("  ").next().unwrap_or_default().split(' ').collect();
        Self { root, only_reexports: note == "only re-exports", layers: layers.lines().map(modules).collect() }
    }

    /// Returns which layer a file is in, counted from the highest. The root is in none.
    fn layer(&self, file: &SourceFile) -> Option<usize> {
        let top = file.module.first()?;
        self.layers.iter().position(|modules| modules.contains(&&**top))
    }
}

/// Prints the layers of every crate, highest first, and checks all imports.
pub(crate) fn print() -> Outcome {
    println!("{}", step::read(TABLE)?);
    run()
}

/// Checks every import of every crate, and the names of their types.
pub(crate) fn run() -> Outcome {
    step::announce("layers");
    let mut all = Vec::new();
    for krate in step::read(TABLE)?.trim_end().split("\n\n").skip(1).map(CrateLayers::read) {
        all.extend(findings(&krate, &source::read(krate.root)?));
    }
    all.extend(SharedNames::read()?.findings());
    if all.is_empty() { Ok(()) } else { Err(all.join("\n")) }
}

/// Returns what is wrong in a crate, whose first file is its root.
fn findings(krate: &CrateLayers<'_>, files: &[SourceFile]) -> Vec<String> {
    let mut findings = findings_in_root(krate, &files[0]);
    let imports = imports(files);
    let describe = |import: &Import| {
        let [from, to] = [import.from, import.to].map(|file| &files[file].path);
        format!("{from}:{}: imports `crate::{}` ({to})", import.line, import.path)
    };
    let of_root = imports.iter().filter(|import| import.is_from_root).map(describe);
    findings
        .extend(of_root.map(|import| format!("{import}: the root only re-exports it; remedy: the path by its module")));
    let is_upward = |import: &&Import| {
        let [from, to] = [import.from, import.to].map(|file| krate.layer(&files[file]));
        from.is_some() && to.is_some() && to < from
    };
    let (upward, others): (Vec<_>, Vec<_>) = imports.iter().partition(is_upward);
    findings.extend(upward.into_iter().map(|import| format!("{}: its layer is above this one", describe(import))));
    let leaving = imports.iter().filter(|import| leaves_module(&files[import.from], &files[import.to])).map(describe);
    findings
        .extend(leaving.map(|import| format!("{import}: a layer before a store knows no other, and no kind of store")));
    findings.extend(files.iter().filter(|file| is_unlisted_layer(file)).map(|file| {
        format!(
            "{}: decides calls for a store below it; remedy: name its module in `BEFORE_STORES` of xtask",
            file.path
        )
    }));
    let circle: Vec<_> = circle(others).into_iter().map(describe).collect();
    if !circle.is_empty() {
        findings.push(format!("these files import each other in a circle:\n    {}", circle.join("\n    ")));
    }
    if files[0].children().any(|module| module == SYSTEM) {
        findings.extend(files.iter().flat_map(bypasses));
    }
    findings
}

/// Whether a file of a module before the stores imports what is around that module, or a store of one kind.
fn leaves_module(from: &SourceFile, to: &SourceFile) -> bool {
    let is_in = |file: &SourceFile, path: &[&str]| {
        file.module.iter().zip(path).filter(|(own, of)| own == of).count() == path.len()
    };
    let leaves = |module: &[&str; 2]| is_in(from, module) && !is_in(to, module) && is_in(to, &module[..1]);
    let names_store = || STORES.iter().any(|store| is_in(to, store));
    BEFORE_STORES.iter().any(|module| leaves(module) || is_in(from, module) && names_store())
}

/// Whether a file before the stores implements the trait of a layer, and is in no module whose imports are checked.
fn is_unlisted_layer(file: &SourceFile) -> bool {
    let [above, module, ..] = &file.module[..] else { return false };
    let is_listed = |listed: &[&str; 2]| *listed == [above.as_str(), module.as_str()];
    let is_layer =
        || file.lines.iter().any(|line| line.code.starts_with("impl") && line.code.contains(" Decider for "));
    above == BEFORE_STORES[0][0] && !BEFORE_STORES.iter().any(is_listed) && is_layer()
}

/// What a file takes from the system itself.
fn bypasses(file: &SourceFile) -> Vec<String> {
    if file.module.first().is_some_and(|module| module == SYSTEM) {
        return Vec::new();
    }
    let is_of_system = |path: &str| OF_SYSTEM.iter().any(|item| format!("::{path}::").contains(&format!("::{item}::")));
    let taken = mentions(file).into_iter().filter(|mention| is_of_system(&mention.text));
    taken
        .map(|Mention { text, line, .. }| {
            format!("{}:{line}: takes `{text}`; remedy: what `crate::{SYSTEM}` has in its place", file.path)
        })
        .collect()
}

/// The root has the code that it may have, its modules have one layer each, and the modules of the table exist.
fn findings_in_root(krate: &CrateLayers<'_>, root: &SourceFile) -> Vec<String> {
    let mut findings = Vec::new();
    let is_item = |code: &str| code.split([' ', '<']).any(|word| ITEMS.contains(&word));
    if let Some(line) = root.lines.iter().find(|line| krate.only_reexports && is_item(&line.code)) {
        let holds = "the root holds modules, re-exports and documentation only; remedy: move this item";
        findings.push(format!("{}:{}: {holds}", root.path, line.number));
    }
    let listed: BTreeSet<_> = krate.layers.concat().into_iter().collect();
    let modules: BTreeSet<_> = root.children().filter(|_| !listed.is_empty()).collect();
    for module in &modules - &listed {
        findings.push(format!("{}: `{module}` has no layer; remedy: name it in {TABLE}", root.path));
    }
    for module in &listed - &modules {
        findings.push(format!("{}: there is no `{module}`; remedy: remove it from {TABLE}", root.path));
    }
    findings
}

/// Returns a circle of these imports, if there is one.
fn circle(imports: Vec<&Import>) -> Vec<&Import> {
    let mut circle = in_circles(imports);
    let mut at = 0;
    while at < circle.len() {
        let others = [&circle[..at], &circle[at + 1..]].concat();
        match in_circles(others) {
            // It is in every circle that is left.
            none if none.is_empty() => at += 1,
            smaller => circle = smaller,
        }
    }
    circle
}

/// Leaves out imports that are in no circle, nor on a way from one circle to another.
fn in_circles(mut imports: Vec<&Import>) -> Vec<&Import> {
    loop {
        let before = imports.len();
        let importing: BTreeSet<_> = imports.iter().map(|import| import.from).collect();
        let imported: BTreeSet<_> = imports.iter().map(|import| import.to).collect();
        imports.retain(|import| importing.contains(&import.to) && imported.contains(&import.from));
        if imports.len() == before {
            return imports;
        }
    }
}
