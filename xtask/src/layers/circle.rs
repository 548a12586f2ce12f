//! Files that import each other.

use std::collections::{BTreeMap, VecDeque};

use super::imports::Import;

/// Returns the shortest circle of these imports.
pub(super) fn shortest_circle<'a>(imports: &[&'a Import]) -> Option<Vec<&'a Import>> {
    let mut of_file: BTreeMap<usize, Vec<&Import>> = BTreeMap::new();
    for import in imports {
        of_file.entry(import.from).or_default().push(import);
    }
    of_file.keys().filter_map(|file| circle_from(*file, &of_file)).min_by_key(Vec::len)
}

fn circle_from<'a>(start: usize, of_file: &BTreeMap<usize, Vec<&'a Import>>) -> Option<Vec<&'a Import>> {
    let mut reached_by: BTreeMap<usize, &Import> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(file) = queue.pop_front() {
        for import in of_file.get(&file).into_iter().flatten() {
            reached_by.entry(import.to).or_insert_with(|| {
                queue.push_back(import.to);
                import
            });
        }
    }
    let mut circle = vec![*reached_by.get(&start)?];
    while circle[0].from != start {
        circle.insert(0, reached_by.get(&circle[0].from)?);
    }
    Some(circle)
}
