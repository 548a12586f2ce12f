//! The pages of the repository, as tests see them: each link leads somewhere, the front page names each page, and the README
//! says the same in both languages.

mod languages;
mod links;
mod page;

use std::fs;
use std::path::Path;

use self::page::Page;
use crate::step;

/// Every page of the repository, its path from the root.
fn all() -> Vec<Page> {
    let mut pages = Vec::new();
    collect(&step::root(), &mut pages);
    assert!(pages.len() > 20, "the repository has pages: {}", pages.len());
    pages
}

fn collect(folder: &Path, pages: &mut Vec<Page>) {
    for entry in fs::read_dir(folder).expect("a folder can be read") {
        let path = entry.expect("an entry can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !path.is_symlink() && !["target", ".git"].contains(&name.as_str()) {
            collect(&path, pages);
        } else if path.is_file() && !path.is_symlink() && path.extension().is_some_and(|extension| extension == "md") {
            pages.push(Page::read(&path));
        }
    }
}

/// The page of that path from the root.
fn named<'a>(pages: &'a [Page], path: &str) -> &'a Page {
    pages.iter().find(|page| page.path == Path::new(path)).unwrap_or_else(|| panic!("there is a page {path}"))
}
