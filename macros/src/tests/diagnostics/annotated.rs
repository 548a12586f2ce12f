//! The annotated items of a file, as the tokens that the compiler gives to the attribute.

use std::ops::Range;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

const ATTRIBUTE: &str = "rate_limit";

pub(super) struct Annotated {
    pub(super) arguments: TokenStream,
    /// The rest of the item, after the attribute.
    pub(super) item: TokenStream,
    /// The place of the attribute in the text.
    pub(super) attribute: Range<usize>,
}

/// Returns the annotated items, at any depth, in the order of their attributes.
pub(super) fn items(file: TokenStream) -> Vec<Annotated> {
    let trees: Vec<_> = file.into_iter().collect();
    let mut items = Vec::new();
    for (index, tree) in trees.iter().enumerate() {
        if let [TokenTree::Punct(hash), TokenTree::Group(brackets), rest @ ..] = &trees[index..]
            && let Some(arguments) = arguments(brackets.stream())
        {
            let attribute = hash.span().byte_range().start..brackets.span_close().byte_range().end;
            items.push(Annotated { arguments, item: first_item(rest), attribute });
        }
        if let TokenTree::Group(group) = tree {
            items.extend(self::items(group.stream()));
        }
    }
    items
}

/// Returns the arguments of the attribute, whichever path names it.
fn arguments(attribute: TokenStream) -> Option<TokenStream> {
    let mut trees = attribute.into_iter().skip_while(is_path);
    let named = trees.next().is_some_and(|tree| matches!(&tree, TokenTree::Ident(name) if name == ATTRIBUTE));
    named.then(|| match trees.next() {
        Some(TokenTree::Group(arguments)) => arguments.stream(),
        _ => TokenStream::new(),
    })
}

/// Returns whether the token is part of the path before the name.
fn is_path(tree: &TokenTree) -> bool {
    match tree {
        TokenTree::Ident(name) => name != ATTRIBUTE,
        TokenTree::Punct(punct) => punct.as_char() == ':',
        _ => false,
    }
}

fn first_item(trees: &[TokenTree]) -> TokenStream {
    let is_last = |tree: &TokenTree| match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    };
    let end = trees.iter().position(is_last).map_or(trees.len(), |last| last + 1);
    trees[..end].iter().cloned().collect()
}
