//! Which file a path leads to.

use super::{FileId, ModuleId, ROOT, Source};

/// No chain of re-exports is longer, unless it is a circle.
const LONGEST_CHAIN: usize = 16;

impl Source {
    /// Returns the file of a module.
    pub(in crate::layers) fn file(&self, module: ModuleId) -> &str {
        &self.files[self.modules[module].file]
    }

    /// Returns the file in which the item lies that a path names, or nothing where it lies outside of the crate.
    pub(in crate::layers) fn resolve(&self, module: ModuleId, path: &[String]) -> Option<FileId> {
        self.resolve_after(0, module, path)
    }

    /// Returns the module by path that holds an item which is imported from the root, although the root only re-exports
    /// it.
    pub(in crate::layers) fn reexport_of_root(&self, module: ModuleId, path: &[String]) -> Option<String> {
        let (ROOT, [name, ..]) = self.start(module, path).filter(|_| module != ROOT)? else { return None };
        let root = &self.modules[ROOT];
        if root.children.contains_key(name) || root.items.contains(name) {
            return None;
        }
        let found = root.uses.iter().find(|found| found.name.as_ref() == Some(name))?;
        let path = found.path.iter().filter(|segment| !["self", "crate"].contains(&segment.as_str()));
        let path = path.map(String::as_str).collect::<Vec<_>>().join("::");
        let is_inside = self.resolve(ROOT, &found.path).is_some();
        Some(if is_inside { format!("crate::{path}") } else { path })
    }

    /// Tells whether a module is another or lies in it.
    pub(in crate::layers) fn is_within(&self, module: ModuleId, other: ModuleId) -> bool {
        module == other || self.modules[module].parent.is_some_and(|parent| self.is_within(parent, other))
    }

    fn resolve_after(&self, chain: usize, module: ModuleId, path: &[String]) -> Option<FileId> {
        if chain > LONGEST_CHAIN {
            return None;
        }
        let (module, rest) = self.start(module, path)?;
        self.descend(chain, module, rest)
    }

    /// Returns the module in which a path begins, and what follows.
    fn start<'a>(&self, module: ModuleId, path: &'a [String]) -> Option<(ModuleId, &'a [String])> {
        match path.first()?.as_str() {
            "crate" => Some((ROOT, &path[1..])),
            "self" => Some((module, &path[1..])),
            "super" => {
                let parent = self.modules[module].parent?;
                let goes_on = path.get(1).is_some_and(|next| next == "super");
                if goes_on { self.start(parent, &path[1..]) } else { Some((parent, &path[1..])) }
            }
            name => self.knows(module, name).then_some((module, path)),
        }
    }

    fn knows(&self, module: ModuleId, name: &str) -> bool {
        let module = &self.modules[module];
        let is_used = || module.uses.iter().any(|found| found.name.as_deref() == Some(name));
        module.children.contains_key(name) || module.items.contains(name) || is_used()
    }

    fn descend(&self, chain: usize, module: ModuleId, path: &[String]) -> Option<FileId> {
        let here = &self.modules[module];
        let Some((name, rest)) = path.split_first() else { return Some(here.file) };
        if let Some(&child) = here.children.get(name) {
            return self.descend(chain, child, rest);
        }
        if here.items.contains(name) {
            return Some(here.file);
        }
        let follow = |found: &[String], rest: &[String]| self.resolve_after(chain + 1, module, &[found, rest].concat());
        if let Some(found) = here.uses.iter().find(|found| found.name.as_ref() == Some(name)) {
            return follow(&found.path, rest);
        }
        // What a macro defined, where no glob brings it.
        let globs = here.uses.iter().filter(|found| found.name.is_none());
        let elsewhere = globs.filter_map(|glob| follow(&glob.path, path)).find(|&file| file != here.file);
        elsewhere.or(Some(here.file))
    }
}
