//! The source of a crate: its files, its modules and the paths that they mention.

mod attributes;
mod items;
mod mentions;
mod resolve;
mod uses;

use std::collections::{BTreeMap, BTreeSet};

pub(super) type FileId = usize;
pub(super) type ModuleId = usize;

/// The root of the crate among its modules.
pub(super) const ROOT: ModuleId = 0;

/// The source of a crate.
pub(super) struct Source {
    /// Paths of the files.
    pub(super) files: Vec<String>,
    pub(super) modules: Vec<Module>,
    pub(super) mentions: Vec<Mention>,
    /// Lines of the root with items that are neither modules nor re-exports.
    pub(super) code_in_root: Vec<usize>,
}

/// A module, and the names that it knows.
#[derive(Default)]
pub(super) struct Module {
    pub(super) file: FileId,
    /// The child of the root that this module is or lies in; nothing for the root.
    pub(super) top: Option<String>,
    pub(super) parent: Option<ModuleId>,
    pub(super) children: BTreeMap<String, ModuleId>,
    /// Names that are defined here.
    pub(super) items: BTreeSet<String>,
    pub(super) uses: Vec<Use>,
}

/// One name that a `use` brings, or all names of a module.
pub(super) struct Use {
    /// Nothing for `*`.
    pub(super) name: Option<String>,
    pub(super) path: Vec<String>,
}

/// A path in the source.
pub(super) struct Mention {
    pub(super) module: ModuleId,
    pub(super) line: usize,
    pub(super) path: Vec<String>,
    pub(super) kind: MentionKind,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum MentionKind {
    /// A private `use`, or a path in code.
    Import,
    /// A `use` that is visible outside of its module.
    Reexport,
}
