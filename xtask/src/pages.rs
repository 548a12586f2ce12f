//! The pages of the repository, as tests see them: each link leads somewhere, the front page names each page, and the README
//! says the same in both languages.

mod languages;
mod links;

use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::code_block::{CodeBlock, code_blocks};
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

/// A page in Markdown.
#[derive(Default)]
struct Page {
    /// From the root of the repository.
    path: PathBuf,
    /// Where its links and pictures lead, as they are written.
    destinations: Vec<String>,
    anchors: Vec<String>,
    levels: Vec<HeadingLevel>,
    code: Vec<CodeBlock>,
    /// Its text, without headings and blocks of code.
    prose: String,
}

/// Where a text of the page belongs.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Prose,
    Heading,
    Code,
}

impl Page {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let path = path.strip_prefix(step::root()).unwrap_or(path).to_owned();
        Self { path, ..Self::parse(&text) }
    }

    fn parse(text: &str) -> Self {
        let mut page = Self { code: code_blocks(text), ..Self::default() };
        let mut headings = Vec::new();
        let mut place = Place::Prose;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.destinations.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { level, .. }) => {
                    place = Place::Heading;
                    page.levels.push(level);
                    headings.push(String::new());
                }
                Event::Start(Tag::CodeBlock(_)) => place = Place::Code,
                Event::End(TagEnd::Heading(_) | TagEnd::CodeBlock) => place = Place::Prose,
                Event::Text(text) | Event::Code(text) => match place {
                    Place::Prose => page.prose.push_str(&text),
                    Place::Heading => headings.last_mut().expect("it has begun").push_str(&text),
                    Place::Code => {}
                },
                Event::SoftBreak | Event::HardBreak | Event::End(_) => page.prose.push(' '),
                _ => {}
            }
        }
        page.anchors = anchors(&headings);
        page
    }
}

/// The anchor of a heading: in lower case, with hyphens for spaces, without punctuation.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The anchors of the headings of a page: one that there was before gets a number.
fn anchors(headings: &[String]) -> Vec<String> {
    let plain: Vec<_> = headings.iter().map(|heading| anchor(heading)).collect();
    let numbered = |(at, name): (usize, &String)| match plain[..at].iter().filter(|earlier| *earlier == name).count() {
        0 => name.clone(),
        earlier => format!("{name}-{earlier}"),
    };
    plain.iter().enumerate().map(numbered).collect()
}

#[test]
fn anchors_are_those_of_github() {
    let headings =
        ["RuoYi's `@RateLimiter`", "Rules", "用于 Web 服务", "规则集中定义，与手动检查", "Rules", "on_outage"];
    let headings = headings.map(|heading| heading.replace('`', ""));
    let expected = ["ruoyis-ratelimiter", "rules", "用于-web-服务", "规则集中定义与手动检查", "rules-1", "on_outage"];
    assert_eq!(anchors(&headings), expected);
}
