//! Where links lead.

use std::path::{Component, Path, PathBuf};

use super::Page;
use super::{all, named};
use crate::step;

/// A destination within the repository: a path from its root, and an anchor, which may be empty.
fn within(page: &Path, destination: &str) -> Option<(PathBuf, String)> {
    if destination.contains("://") || destination.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = destination.split_once('#').unwrap_or((destination, ""));
    let folder = page.parent().unwrap_or(Path::new(""));
    let target = if path.is_empty() { page.to_owned() } else { straight(&folder.join(path)) };
    Some((target, anchor.to_owned()))
}

/// The path without `..`.
fn straight(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut straight, part| {
        match part {
            Component::ParentDir => assert!(straight.pop(), "{} leads out of the repository", path.display()),
            part => straight.push(part),
        }
        straight
    })
}

/// What is wrong with a link, if anything is.
fn mistake(pages: &[Page], page: &Page, destination: &str) -> Option<String> {
    let (path, anchor) = within(&page.path, destination)?;
    let found = step::root().join(&path).exists();
    let target = pages.iter().find(|page| page.path == path);
    let led = anchor.is_empty() || target.is_some_and(|target| target.anchors.contains(&anchor));
    (!found || !led).then(|| format!("{}: ({destination}) leads nowhere", page.path.display()))
}

#[test]
fn every_link_of_the_repository_leads_to_a_file_and_to_a_heading() {
    let pages = all();
    let links = pages.iter().flat_map(|page| page.destinations.iter().map(move |destination| (page, destination)));
    let mistakes: Vec<_> = links.filter_map(|(page, destination)| mistake(&pages, page, destination)).collect();
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn a_link_to_a_file_or_a_heading_that_is_not_there_is_found() {
    let page = Page { path: "docs/README.md".into(), ..Page::parse("# Rules\n\n[a](../README.md#rules) [b](#rules)") };
    let pages = [Page { path: "README.md".into(), ..Page::parse("# Some rules") }, page];
    assert_eq!(pages[1].destinations, ["../README.md#rules", "#rules"]);
    assert_eq!(mistake(&pages, &pages[1], "#rules"), None);
    assert_eq!(mistake(&pages, &pages[1], "../README.md#some-rules"), None);
    assert_eq!(mistake(&pages, &pages[1], "https://example.org/#rules"), None);
    for wrong in ["../README.md#rules", "#some-rules", "../none.md", "none.md#rules"] {
        assert!(mistake(&pages, &pages[1], wrong).is_some(), "{wrong}");
    }
}

#[test]
fn the_front_page_names_every_page_of_the_documentation() {
    let pages = all();
    let front = named(&pages, "docs/README.md");
    let linked: Vec<_> = front.destinations.iter().filter_map(|link| within(&front.path, link)).collect();
    let folders = [Path::new("docs"), Path::new("runtime/guide")].map(Some);
    for page in pages.iter().filter(|page| folders.contains(&page.path.parent()) && !page.path.ends_with("README.md")) {
        assert!(linked.iter().any(|(path, _)| *path == page.path), "docs/README.md lacks {}", page.path.display());
    }
}
