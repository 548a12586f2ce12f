//! No import runs upward, and no files import each other in a circle: see [`table`] for the layers, [`mod@imports`] for what an
//! import is.

mod circle;
mod imports;
mod table;
#[cfg(test)]
mod tests;

use self::circle::shortest_circle;
use self::imports::{Import, imports};
use self::table::{CRATES, CrateLayers, Root};
use crate::source::{self, SourceFile};
use crate::step::{self, Outcome};

/// Tokens of items that are more than a module or a re-export.
const ITEMS: [&str; 9] = ["fn", "struct", "enum", "union", "trait", "impl", "const", "static", "macro_rules"];

/// Prints the layers of every crate, highest first, and checks all imports.
pub(crate) fn print() -> Outcome {
    for krate in CRATES.iter().filter(|krate| !krate.layers.is_empty()) {
        println!("{}:", krate.root);
        for (modules, purpose) in krate.layers {
            println!("  {modules:<60}{purpose}");
        }
    }
    run()
}

/// Checks every import of every crate.
pub(crate) fn run() -> Outcome {
    step::announce("layers");
    let mut all = Vec::new();
    for krate in CRATES {
        all.extend(findings(krate, &source::read(krate.root)?));
    }
    if all.is_empty() { Ok(()) } else { Err(all.join("\n")) }
}

/// Returns what is wrong in a crate, whose first file is its root. Of circles, it is the shortest.
fn findings(krate: &CrateLayers, files: &[SourceFile]) -> Vec<String> {
    let imports = imports(files);
    let (upward, others): (Vec<_>, Vec<_>) = imports.iter().partition(|import| is_upward(krate, files, import));
    let from_root = imports.iter().filter(|import| import.is_from_root).map(|import| {
        format!("{}: the root only re-exports it; remedy: the path by its module", describe(files, import))
    });
    let upward = upward.iter().map(|import| format!("{}: its layer is above this one", describe(files, import)));
    let circle = shortest_circle(&others).map(|circle| {
        let steps: Vec<_> = circle.iter().map(|import| describe(files, import)).collect();
        format!("{}: these files import each other in a circle:\n    {}", krate.root, steps.join("\n    "))
    });
    let of_root = code_in_root(krate, &files[0]).into_iter().chain(mistakes_of_table(krate, &files[0]));
    of_root.chain(from_root).chain(upward).chain(circle).collect()
}

fn describe(files: &[SourceFile], import: &Import) -> String {
    let [from, to] = [import.from, import.to].map(|file| &files[file].path);
    format!("{from}:{}: imports `crate::{}` ({to})", import.line, import.path)
}

fn code_in_root(krate: &CrateLayers, root: &SourceFile) -> Option<String> {
    let is_item = |text: &str| krate.kind == Root::Facade && ITEMS.contains(&text);
    let line = root.tokens.iter().find(|token| is_item(&token.text))?.lines.0;
    Some(format!(
        "{}:{line}: the root holds modules, re-exports and documentation only; remedy: move this item",
        root.path
    ))
}

/// Every module of the root has one layer, and every module in the table exists.
fn mistakes_of_table(krate: &CrateLayers, root: &SourceFile) -> Vec<String> {
    const TABLE: &str = "xtask/src/layers/table.rs";
    let listed: Vec<_> = krate.layers.iter().flat_map(|(modules, _)| modules.split(' ')).collect();
    let modules: Vec<_> = root.children().filter(|_| !listed.is_empty()).collect();
    let without = modules.iter().filter(|module| !listed.contains(module));
    let without = without.map(|module| format!("{}: `{module}` has no layer; remedy: name it in {TABLE}", root.path));
    let gone = listed.iter().filter(|module| !modules.contains(module));
    let gone = gone.map(|module| format!("{}: there is no `{module}`; remedy: remove it from {TABLE}", root.path));
    without.chain(gone).collect()
}

fn is_upward(krate: &CrateLayers, files: &[SourceFile], import: &Import) -> bool {
    // Counted from the highest; the root has none.
    let layer = |file: usize| {
        let top = files[file].module.first()?;
        krate.layers.iter().position(|(modules, _)| modules.split(' ').any(|module| module == top))
    };
    matches!((layer(import.from), layer(import.to)), (Some(from), Some(to)) if to < from)
}
