//! Which file imports which.

use std::collections::{BTreeMap, VecDeque};

use super::source::{FileId, MentionKind, Source};

/// An import of one file by another, as it is first written.
#[derive(Clone, PartialEq)]
pub(super) struct Import {
    pub(super) from: FileId,
    pub(super) to: FileId,
    pub(super) line: usize,
    /// What is imported, as it is written.
    pub(super) path: String,
}

/// Returns every pair of files of which one imports the other, once. That a module re-exports what its own children
/// define is no import.
pub(super) fn imports(source: &Source) -> Vec<Import> {
    let mut found = BTreeMap::new();
    for mention in &source.mentions {
        let from = source.modules[mention.module].file;
        let Some(to) = source.resolve(mention.module, &mention.path) else { continue };
        let is_of_own_child = || {
            let children = source.modules.iter().enumerate().filter(|(_, module)| module.file == to);
            children.map(|(id, _)| id).any(|id| source.is_within(id, mention.module))
        };
        if from == to || mention.kind == MentionKind::Reexport && is_of_own_child() {
            continue;
        }
        let import = Import { from, to, line: mention.line, path: mention.path.join("::") };
        found.entry((from, to)).or_insert(import);
    }
    found.into_values().collect()
}

/// Returns circles of imports, each as short as one through its first file can be; every file that is part of a circle is
/// in one of them.
pub(super) fn circles(files: usize, imports: &[Import]) -> Vec<Vec<Import>> {
    let mut circles: Vec<Vec<Import>> = Vec::new();
    for file in 0..files {
        let is_known = circles.iter().flatten().any(|import| import.from == file);
        if !is_known && let Some(circle) = shortest_circle(file, imports) {
            circles.push(circle);
        }
    }
    circles
}

fn shortest_circle(start: FileId, imports: &[Import]) -> Option<Vec<Import>> {
    let mut reached_by: BTreeMap<FileId, &Import> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(file) = queue.pop_front() {
        for import in imports.iter().filter(|import| import.from == file) {
            if let std::collections::btree_map::Entry::Vacant(vacant) = reached_by.entry(import.to) {
                vacant.insert(import);
                queue.push_back(import.to);
            }
        }
    }
    let mut circle = vec![(*reached_by.get(&start)?).clone()];
    while let Some(first) = circle.first().filter(|import| import.from != start) {
        let before = (*reached_by.get(&first.from)?).clone();
        circle.insert(0, before);
    }
    Some(circle)
}
