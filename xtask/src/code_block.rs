//! The blocks of code on a page in Markdown.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

/// A block of code, as it stands on a page.
pub(crate) struct CodeBlock {
    /// What stands behind the backticks, like `rust,no_run`.
    pub(crate) language: String,
    /// The line of the page that has its first line.
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// Returns the blocks between backticks.
pub(crate) fn code_blocks(page: &str) -> Vec<CodeBlock> {
    let mut blocks = Vec::new();
    let mut open = None;
    for (event, range) in Parser::new(page).into_offset_iter() {
        match (event, &mut open) {
            (Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))), _) => {
                let backticks = page[..range.start].matches('\n').count() + 1;
                open = Some(CodeBlock { language: language.to_string(), line: backticks + 1, text: String::new() });
            }
            (Event::Text(text), Some(block)) => block.text.push_str(&text),
            (Event::End(TagEnd::CodeBlock), _) => blocks.extend(open.take()),
            _ => {}
        }
    }
    blocks
}

#[test]
fn a_block_knows_its_language_and_its_line() {
    let blocks = code_blocks("# A page\n\n```rust,no_run\nfn f() {}\n\n```\n\n* in a list\n\n  ```sh\n  ls\n  ```\n");
    let parts: Vec<_> = blocks.iter().map(|block| (&*block.language, block.line, &*block.text)).collect();
    assert_eq!(parts, [("rust,no_run", 4, "fn f() {}\n\n"), ("sh", 11, "ls\n")]);
}
