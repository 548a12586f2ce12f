//! What a `use` brings.

use syn::spanned::Spanned as _;
use syn::{Ident, UseTree};

use super::Use;

/// Returns what a `use` brings, each with its line.
pub(super) fn flatten(tree: &UseTree) -> Vec<(Use, usize)> {
    let line = tree.span().start().line;
    match tree {
        UseTree::Path(path) => {
            let mut nested = flatten(&path.tree);
            for (found, _) in &mut nested {
                found.prefix(path.ident.to_string());
            }
            nested
        }
        UseTree::Name(name) => vec![(Use::named(&name.ident, &name.ident), line)],
        UseTree::Rename(name) => vec![(Use::named(&name.ident, &name.rename), line)],
        UseTree::Glob(_) => vec![(Use { name: None, path: Vec::new() }, line)],
        UseTree::Group(group) => group.items.iter().flat_map(flatten).collect(),
    }
}

impl Use {
    fn named(original: &Ident, name: &Ident) -> Self {
        Self { name: Some(name.to_string()), path: vec![original.to_string()] }
    }

    fn prefix(&mut self, segment: String) {
        // `a::{self}` brings `a`.
        if self.path == ["self"] {
            self.path.clear();
            self.name = self.name.take().map(|name| if name == "self" { segment.clone() } else { name });
        }
        self.path.insert(0, segment);
    }
}
