//! The README in two languages: what is in one is in the other.

use proc_macro2::{TokenStream, TokenTree};

use super::Page;
use super::{all, named};
use crate::code_block::CodeBlock;

const ENGLISH: &str = "README.md";
const CHINESE: &str = "README.zh-CN.md";

/// Where the links of a page lead, in the order of the alphabet. A heading has another anchor in each language.
fn destinations(page: &Page) -> Vec<&str> {
    let other_language = [ENGLISH, CHINESE];
    let links = page.destinations.iter().map(String::as_str).filter(|link| !other_language.contains(link));
    let mut links: Vec<_> = links.map(|link| if link.starts_with('#') { "#" } else { link }).collect();
    links.sort_unstable();
    links
}

/// The figures of a page with a decimal point, in the order of their size.
fn figures(page: &Page) -> Vec<&str> {
    let words = page.prose.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let mut figures: Vec<_> = words.map(|word| word.trim_matches('.')).filter(|word| word.contains('.')).collect();
    figures.sort_unstable();
    figures
}

#[test]
fn both_readmes_have_the_same_sections() {
    let pages = all();
    assert_eq!(named(&pages, ENGLISH).levels, named(&pages, CHINESE).levels);
}

#[test]
fn both_readmes_have_the_same_code() {
    let pages = all();
    let (english, chinese) = (&named(&pages, ENGLISH).code, &named(&pages, CHINESE).code);
    for (own, other) in english.iter().zip(chinese) {
        assert!(own.is_translated_by(other), "{}\n{}", own.text, other.text);
    }
    assert_eq!(english.len(), chinese.len());
}

#[test]
fn both_readmes_have_the_same_figures() {
    let pages = all();
    assert_eq!(figures(named(&pages, ENGLISH)), figures(named(&pages, CHINESE)));
}

#[test]
fn both_readmes_lead_to_the_same_pages() {
    let pages = all();
    let (english, chinese) = (named(&pages, ENGLISH), named(&pages, CHINESE));
    assert_eq!(destinations(english), destinations(chinese));
    assert!(english.destinations.iter().any(|link| link == CHINESE));
    assert!(chinese.destinations.iter().any(|link| link == ENGLISH));
}

impl CodeBlock {
    /// Whether a translation has the same code. Its comments may differ, and texts that it has translated, which are not ASCII.
    pub(super) fn is_translated_by(&self, translation: &Self) -> bool {
        let (own, other) = (self.parts(), translation.parts());
        let pairs = || own.iter().zip(&other);
        self.language == translation.language
            && own.len() == other.len()
            && pairs().all(|(own, other)| own == other || is_text(own) && is_text(other) && !other.is_ascii())
    }

    /// What has to stay: tokens of Rust, lines of a shell, or the whole text.
    fn parts(&self) -> Vec<String> {
        match self.language.split(',').next() {
            Some("rust") => tokens(self.text.parse().unwrap_or_else(|error| panic!("{}\n{error}", self.text))),
            Some("sh") => self.text.lines().map(|line| without_comment(line).to_owned()).collect(),
            _ => vec![self.text.clone()],
        }
    }
}

fn tokens(stream: TokenStream) -> Vec<String> {
    let within = |tree| match tree {
        TokenTree::Group(group) => {
            let mut within = tokens(group.stream());
            within.insert(0, format!("{:?}", group.delimiter()));
            within.push("end".to_owned());
            within
        }
        token => vec![token.to_string()],
    };
    stream.into_iter().flat_map(within).collect()
}

fn is_text(token: &str) -> bool {
    token.starts_with('"')
}

fn without_comment(line: &str) -> &str {
    line.split_once(" #").map_or(line, |(code, _)| code).trim_end()
}

#[test]
fn comments_and_texts_may_be_translated_and_nothing_else() {
    let block = |language: &str, text: &str| CodeBlock { language: language.into(), line: 1, text: text.into() };
    let rust = block("rust", r#"fn f() { println!("ten"); } // ten"#);
    assert!(rust.is_translated_by(&block("rust", r#"fn f() { println!("十"); } // 十"#)));
    assert!(!rust.is_translated_by(&block("rust", r#"fn f() { println!("nine"); } // ten"#)));
    assert!(!rust.is_translated_by(&block("rust", r#"fn g() { println!("ten"); } // ten"#)));
    assert!(!rust.is_translated_by(&block("rust,no_run", r#"fn f() { println!("ten"); } // ten"#)));
    let shell = block("sh", "cargo test   # all");
    assert!(shell.is_translated_by(&block("sh", "cargo test # 全部")));
    assert!(!shell.is_translated_by(&block("sh", "cargo run # 全部")));
    assert!(!block("text", "429").is_translated_by(&block("text", "503")));
}
