//! What tests know of a page.

use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::code_block::{CodeBlock, code_blocks};
use crate::step;

/// A page in Markdown.
#[derive(Default)]
pub(super) struct Page {
    /// From the root of the repository.
    pub(super) path: PathBuf,
    /// Where its links and pictures lead, as they are written.
    pub(super) destinations: Vec<String>,
    pub(super) anchors: Vec<String>,
    pub(super) levels: Vec<HeadingLevel>,
    pub(super) code: Vec<CodeBlock>,
    /// Its text, without headings and blocks of code.
    pub(super) prose: String,
}

/// Where a text of the page belongs.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Prose,
    Heading,
    Code,
}

impl Page {
    pub(super) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let path = path.strip_prefix(step::root()).unwrap_or(path).to_owned();
        Self { path, ..Self::parse(&text) }
    }

    pub(super) fn parse(text: &str) -> Self {
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
pub(super) fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The anchors of the headings of a page: one that there was before gets a number.
pub(super) fn anchors(headings: &[String]) -> Vec<String> {
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
