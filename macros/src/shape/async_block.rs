//! The async block in which a function without `async` awaits the decision.
//!
//! The block is found by its tokens, so its contents need not parse.

use proc_macro2::{Delimiter, Group, TokenTree};

use crate::shape::tokens::{is_group, is_punct, is_word, trees_of};

/// Methods of futures that do not change the output.
const ADAPTERS: [&str; 4] = ["boxed", "boxed_local", "instrument", "in_current_span"];

/// The place of an async block in the tokens of a body.
pub(super) struct AsyncBlock {
    /// The positions of the groups around the block, outermost first, and of its braces.
    pub(super) path: Vec<usize>,
    /// The position at which the expression around the block starts.
    pub(super) start: usize,
    pub(super) moves: bool,
}

impl AsyncBlock {
    /// Finds `async move { … }` or `Box::pin(async move { … })` as the last expression of a body.
    pub(super) fn at_end(body: &[TokenTree]) -> Option<Self> {
        let (last, ended) = match body.split_last()? {
            (semicolon, before) if is_punct(semicolon, ';') => (before, true),
            _ => (body, false),
        };
        let found = Self::ending(last)?;
        let before = &last[..found.start];
        let returned = strip_word(before, "return");
        let before = returned.unwrap_or(before);
        let found = Self { start: before.len(), ..found };
        (ends_statement(before) && (!ended || returned.is_some())).then_some(found)
    }

    /// Finds `let body = async { … };` as the first statement of a body that blocks on `body`.
    pub(super) fn blocked_on(body: &[TokenTree]) -> Option<Self> {
        let [binding, name @ TokenTree::Ident(_), equals, rest @ ..] = body else { return None };
        let end = rest.iter().position(|tree| is_punct(tree, ';'))?;
        let found = Self::ending(&rest[..end])?;
        let first = is_word(binding, "let") && is_punct(equals, '=') && found.start == 0 && found.path.len() == 1;
        let is_run = first && blocks_on(&rest[end..], &name.to_string());
        is_run.then(|| Self { path: vec![found.path[0] + 3], start: 0, ..found })
    }

    fn ending(trees: &[TokenTree]) -> Option<Self> {
        let (TokenTree::Group(group), before) = without_adapter(trees).split_last()? else { return None };
        let at = before.len();
        match group.delimiter() {
            Delimiter::Brace => Self::opened_by(before, vec![at]),
            Delimiter::Parenthesis => {
                let start = strip_path(strip_word(before, "pin")?)?.len();
                let inner = Self::argument(group)?;
                Some(Self { path: [vec![at], inner.path].concat(), start, ..inner })
            }
            // A macro puts a `$body:block` or a `$future:expr` into such a group.
            Delimiter::None if matches!(trees_of(&group.stream())[..], [ref block] if is_group(block, Delimiter::Brace)) => {
                Self::opened_by(before, vec![at, 0])
            }
            Delimiter::None => {
                let inner = Self::argument(group)?;
                Some(Self { path: [vec![at], inner.path].concat(), start: at, ..inner })
            }
            Delimiter::Bracket => None,
        }
    }

    /// Returns the block at that path, if `async` or `async move` stands before it.
    fn opened_by(before: &[TokenTree], path: Vec<usize>) -> Option<Self> {
        let moved = strip_word(before, "move");
        let start = strip_word(moved.unwrap_or(before), "async")?.len();
        Some(Self { path, start, moves: moved.is_some() })
    }

    fn argument(arguments: &Group) -> Option<Self> {
        let mut argument = trees_of(&arguments.stream());
        argument.pop_if(|last| is_punct(last, ','));
        Self::ending(&argument).filter(|found| found.start == 0)
    }
}

/// Returns whether a statement can start after these tokens.
fn ends_statement(trees: &[TokenTree]) -> bool {
    match trees {
        [] => true,
        [.., bang, attribute] if is_punct(bang, '!') && is_group(attribute, Delimiter::Bracket) => true,
        // A macro puts an item or a statement that it takes as one fragment into such a group.
        [.., last] if is_group(last, Delimiter::None) => ends_statement(&contents(last)),
        [.., last] => is_punct(last, ';') || is_group(last, Delimiter::Brace),
    }
}

fn strip_word<'a>(trees: &'a [TokenTree], word: &str) -> Option<&'a [TokenTree]> {
    trees.split_last().filter(|(last, _)| is_word(last, word)).map(|(_, before)| before)
}

/// Strips `Box::`, `::std::boxed::Box::`.
fn strip_path(trees: &[TokenTree]) -> Option<&[TokenTree]> {
    let before = match trees {
        [before @ .., first, second] if is_punct(first, ':') && is_punct(second, ':') => before,
        _ => return None,
    };
    match before.split_last() {
        Some((TokenTree::Ident(name), rest)) if name != "return" => Some(strip_path(rest).unwrap_or(rest)),
        _ => Some(before),
    }
}

/// Strips `.boxed()`, `.instrument(span)`.
fn without_adapter(trees: &[TokenTree]) -> &[TokenTree] {
    match trees {
        [future @ .., dot, TokenTree::Ident(method), arguments]
            if is_punct(dot, '.')
                && ADAPTERS.iter().any(|adapter| method == adapter)
                && is_group(arguments, Delimiter::Parenthesis) =>
        {
            without_adapter(future)
        }
        _ => trees,
    }
}

/// Returns whether the tokens contain `block_on(name)` at any depth.
fn blocks_on(trees: &[TokenTree], name: &str) -> bool {
    let called = trees.windows(2).any(|pair| is_word(&pair[0], "block_on") && holds_only(&pair[1], name));
    called || trees.iter().any(|tree| blocks_on(&contents(tree), name))
}

fn holds_only(tree: &TokenTree, name: &str) -> bool {
    matches!(contents(tree)[..], [ref only] if is_word(only, name))
}

fn contents(tree: &TokenTree) -> Vec<TokenTree> {
    match tree {
        TokenTree::Group(group) => trees_of(&group.stream()),
        _ => Vec::new(),
    }
}
