//! The code of a crate as tokens: without comments, and without what only its tests have.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::step;

/// A file of a crate.
pub(crate) struct SourceFile {
    /// Its path from the root of the workspace.
    pub(crate) path: String,
    /// Its module, from the root of the crate.
    pub(crate) module: Vec<String>,
    pub(crate) tokens: Vec<Token>,
}

/// A name, a sign, a literal, or one side of a pair of brackets.
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) lines: (usize, usize),
}

/// Reads the files of a crate of this workspace, from its root on.
pub(crate) fn read(root: &str) -> Result<Vec<SourceFile>, String> {
    read_with(root, &step::read)
}

/// The same where `load` returns the text of a file.
pub(crate) fn read_with(root: &str, load: &dyn Fn(&str) -> Result<String, String>) -> Result<Vec<SourceFile>, String> {
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
    let read = |path: &str, module| parse(path, module, &load(path)?);
    let mut files = vec![read(root, Vec::new())?];
    let mut at = 0;
    while let Some(parent) = files.get(at) {
        let modules = parent.children().map(|child| [&*parent.module, &[child.to_owned()]].concat());
        for module in modules.collect::<Vec<_>>() {
            files.push(read(&format!("{folder}/{}.rs", module.join("/")), module)?);
        }
        at += 1;
    }
    Ok(files)
}

/// Reads the text of a file.
pub(crate) fn parse(path: &str, module: Vec<String>, text: &str) -> Result<SourceFile, String> {
    let stream: TokenStream = text.parse().map_err(|error| format!("{path}: {error}"))?;
    let mut tokens = Vec::new();
    flatten(stream, &mut tokens);
    Ok(SourceFile { path: path.to_owned(), module, tokens })
}

impl SourceFile {
    /// The modules that have files of their own.
    pub(crate) fn children(&self) -> impl Iterator<Item = &str> {
        let declares = |window: &&[Token]| window[0].text == "mod" && window[2].text == ";";
        self.tokens.windows(3).filter(declares).map(|window| &*window[1].text)
    }

    /// How many lines have code.
    pub(crate) fn code_lines(&self) -> usize {
        let mut lines: Vec<_> = self.tokens.iter().flat_map(|token| token.lines.0..=token.lines.1).collect();
        lines.sort_unstable();
        lines.dedup();
        lines.len()
    }
}

/// Adds all tokens but documentation, and items that only tests have.
fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    let trees: Vec<_> = stream.into_iter().collect();
    let mut rest = &trees[..];
    while let [tree, after @ ..] = rest {
        rest = match attribute(rest) {
            Some((attribute, after)) if is_of_tests(attribute) => after_item(after),
            Some((attribute, after)) if attribute.to_string().starts_with("[doc ") => after,
            _ => {
                add(tree, tokens);
                after
            }
        };
    }
}

/// Returns the attribute at the beginning, and what follows it.
fn attribute(trees: &[TokenTree]) -> Option<(&Group, &[TokenTree])> {
    let is_sign = |tree: &TokenTree, sign| matches!(tree, TokenTree::Punct(found) if found.as_char() == sign);
    let (_, rest) = trees.split_first().filter(|(hash, _)| is_sign(hash, '#'))?;
    let rest = rest.split_first().filter(|(bang, _)| is_sign(bang, '!')).map_or(rest, |(_, rest)| rest);
    match rest {
        [TokenTree::Group(group), after @ ..] => Some((group, after)),
        _ => None,
    }
}

/// Tells `#[test]`, `#[cfg(test)]` and `#[cfg(all(test, …))]` from attributes of what other builds have, too.
fn is_of_tests(attribute: &Group) -> bool {
    let text: String = attribute.to_string().split_whitespace().collect();
    text == "[test]" || text == "[cfg(test)]" || text.starts_with("[cfg(all(test,")
}

fn after_item(trees: &[TokenTree]) -> &[TokenTree] {
    let ends = |tree: &TokenTree| match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(sign) => sign.as_char() == ';',
        _ => false,
    };
    trees.iter().position(ends).and_then(|end| trees.get(end + 1..)).unwrap_or_default()
}

fn add(tree: &TokenTree, tokens: &mut Vec<Token>) {
    let (start, end) = (tree.span().start().line, tree.span().end().line);
    let mut push = |text: &str, lines| tokens.push(Token { text: text.to_owned(), lines });
    let TokenTree::Group(group) = tree else { return push(&tree.to_string(), (start, end)) };
    let (open, close) = match group.delimiter() {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    };
    push(open, (start, start));
    flatten(group.stream(), tokens);
    tokens.push(Token { text: close.to_owned(), lines: (end, end) });
}

#[test]
fn what_only_tests_have_and_what_documents_is_no_code() {
    let text = "//! A file.\n\n/// A type.\n#[derive(Debug)]\nstruct A {\n    b: u8, // a field\n}\n\n#[cfg(test)]\nmod tests {\n    mod c;\n}\n\n#[cfg(any(test, unix))]\nmod d;\n";
    let file = parse("a.rs", Vec::new(), text).unwrap();
    assert_eq!((file.code_lines(), file.children().collect::<Vec<_>>()), (6, vec!["d"]));
}
