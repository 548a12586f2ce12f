//! What tests know of a page.

use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::heading;
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
        page.anchors = heading::anchors(&headings);
        page
    }
}
