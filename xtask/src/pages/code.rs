//! Blocks of code in two languages of people: the same but for comments and texts.

use proc_macro2::{TokenStream, TokenTree};

use crate::code_block::CodeBlock;

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
