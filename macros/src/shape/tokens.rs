//! Token trees: their kinds, and groups with other contents.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

pub(super) fn trees_of(tokens: &TokenStream) -> Vec<TokenTree> {
    tokens.clone().into_iter().collect()
}

pub(super) fn is_group(tree: &TokenTree, delimiter: Delimiter) -> bool {
    matches!(tree, TokenTree::Group(group) if group.delimiter() == delimiter)
}

pub(super) fn is_punct(tree: &TokenTree, character: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == character)
}

pub(super) fn is_word(tree: &TokenTree, word: &str) -> bool {
    matches!(tree, TokenTree::Ident(ident) if ident == word)
}

/// Removes the invisible groups around all of the tokens, which a macro's `$body:block` leaves.
pub(super) fn ungrouped(tokens: TokenStream) -> TokenStream {
    match &trees_of(&tokens)[..] {
        [TokenTree::Group(group)] if group.delimiter() == Delimiter::None => ungrouped(group.stream()),
        _ => tokens,
    }
}

pub(super) fn with_contents(group: &Group, contents: TokenStream) -> Group {
    let mut edited = Group::new(group.delimiter(), contents);
    edited.set_span(group.span());
    edited
}

/// Edits the group at the end of a path of positions, one for each depth.
pub(super) fn edit_at(outer: &Group, path: &[usize], edit: impl FnOnce(&Group) -> Group) -> Group {
    let Some((&position, path)) = path.split_first() else { return edit(outer) };
    let mut trees = trees_of(&outer.stream());
    if let Some(TokenTree::Group(inner)) = trees.get_mut(position) {
        *inner = edit_at(inner, path, edit);
    }
    with_contents(outer, trees.into_iter().collect())
}

pub(super) fn contents_at(trees: &[TokenTree], path: &[usize]) -> TokenStream {
    let Some((&position, path)) = path.split_first() else { return trees.iter().cloned().collect() };
    match trees.get(position) {
        Some(TokenTree::Group(group)) => contents_at(&trees_of(&group.stream()), path),
        _ => TokenStream::new(),
    }
}
