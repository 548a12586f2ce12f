//! What is wrong with the imports of a crate.

use super::imports::{Import, circles, imports};
use super::source::{FileId, Source};
use super::table::{CrateLayers, Layer, RootRole};

/// Returns everything that is wrong, one finding a line or paragraph.
pub(super) fn findings(krate: &CrateLayers, source: &Source) -> Vec<String> {
    let imports = imports(source);
    let check = Check { krate, source };
    let mut findings = check.root();
    findings.extend(check.table());
    findings.extend(check.imports_from_the_root());
    findings.extend(imports.iter().filter_map(|import| check.upward(import)));
    let circles = circles(source.files.len(), &imports);
    findings.extend(circles.iter().map(|circle| check.circle(circle)));
    findings
}

struct Check<'a> {
    krate: &'a CrateLayers,
    source: &'a Source,
}

impl Check<'_> {
    fn root(&self) -> Vec<String> {
        let lines = self.source.code_in_root.iter().filter(|_| self.krate.root_role == RootRole::Facade);
        let finding = |line| {
            let root = self.krate.root;
            format!("{root}:{line}: the root holds modules, re-exports and documentation only; remedy: move this item")
        };
        lines.map(finding).collect()
    }

    /// Every module of the root has one layer, and every module in the table exists.
    fn table(&self) -> Vec<String> {
        const TABLE: &str = "xtask/src/layers/table.rs";
        let CrateLayers { name, layers, .. } = self.krate;
        if layers.is_empty() {
            return Vec::new();
        }
        let modules = &self.source.modules[super::source::ROOT].children;
        let listed = || layers.iter().flat_map(|layer| layer.modules);
        let without = modules.keys().filter(|module| !listed().any(|listed| listed == module));
        let without = without.map(|module| format!("{name}: `{module}` has no layer; remedy: name it in {TABLE}"));
        let gone = listed().filter(|module| !modules.contains_key(**module));
        let gone = gone.map(|module| format!("{name}: there is no module `{module}`; remedy: remove it from {TABLE}"));
        without.chain(gone).collect()
    }

    fn imports_from_the_root(&self) -> Vec<String> {
        let mut findings = Vec::new();
        for mention in &self.source.mentions {
            let Some(instead) = self.source.reexport_of_root(mention.module, &mention.path) else { continue };
            let (file, path) = (self.source.file(mention.module), mention.path.join("::"));
            let line = mention.line;
            findings.push(format!("{file}:{line}: imports `{path}` from the root; remedy: `{instead}`"));
        }
        findings
    }

    fn upward(&self, import: &Import) -> Option<String> {
        let (from, to) = (self.layer(import.from)?, self.layer(import.to)?);
        let [from, to] = [from, to].map(|layer| (layer, &self.krate.layers[layer]));
        (to.0 < from.0).then(|| {
            let [from, to] = [from.1, to.1].map(|layer: &Layer| layer.name);
            format!("{}: the layer `{to}` is above `{from}`", self.describe(import))
        })
    }

    fn circle(&self, circle: &[Import]) -> String {
        let steps = circle.iter().map(|import| format!("\n    {}", self.describe(import)));
        format!("{}: these files import each other in a circle:{}", self.krate.name, steps.collect::<String>())
    }

    fn describe(&self, import: &Import) -> String {
        let [from, to] = [import.from, import.to].map(|file| &self.source.files[file]);
        format!("{from}:{}: imports `{}` ({to})", import.line, import.path)
    }

    /// Returns the position of a file's layer, counted from the highest. The root has none.
    fn layer(&self, file: FileId) -> Option<usize> {
        let top = self.source.modules.iter().find(|module| module.file == file)?.top.as_ref()?;
        self.krate.layers.iter().position(|layer| layer.modules.contains(&top.as_str()))
    }
}
