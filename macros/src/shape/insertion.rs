//! The check, as it is put into a block.

use proc_macro2::{Group, TokenStream};
use quote::{ToTokens as _, quote};
use syn::parse::{ParseStream, Parser as _};
use syn::{Attribute, Block};

use crate::shape::additions::Refund;
use crate::shape::opening::count_declarations;
use crate::shape::tokens::{is_punct, trees_of, with_contents};

pub(super) struct Insertion<'a> {
    pub(super) statements: TokenStream,
    pub(super) refund: Option<&'a Refund>,
    /// Makes a future of the body, where a refund follows it: `async` or `async move`.
    pub(super) keyword: TokenStream,
}

impl Insertion<'_> {
    /// Puts the check before the statements of a block, behind its declarations.
    ///
    /// An unfinished block is put as it is into another one: the compiler has already reported what is missing in it, and
    /// does so once only if all the places stay the same.
    pub(super) fn before_statements(&self, block: &Group) -> Group {
        if is_finished(block) {
            self.behind_first(count_declarations, block)
        } else {
            self.behind_first(|_| 0, &with_contents(block, block.to_token_stream()))
        }
    }

    /// Puts the check behind the first tokens of a block, as many as are counted, and the refund behind the rest.
    pub(super) fn behind_first(&self, count: fn(TokenStream) -> usize, block: &Group) -> Group {
        let Self { statements, refund, keyword } = self;
        edit_behind_first(count, block, |rest| match refund {
            None => quote!({ #statements } #rest),
            Some(Refund { permit, result, result_type, after }) => {
                let body = with_contents(block, quote!(#result_type #rest));
                quote!(let #permit = { #statements }; let #result = #keyword #body.await; #after)
            }
        })
    }
}

/// Edits the tokens of a block behind its first ones, as many as are counted.
pub(super) fn edit_behind_first(
    count: fn(TokenStream) -> usize,
    block: &Group,
    edit: impl FnOnce(TokenStream) -> TokenStream,
) -> Group {
    let mut trees = trees_of(&block.stream());
    let rest = edit(trees.split_off(count(block.stream())).into_iter().collect());
    with_contents(block, quote!(#(#trees)* #rest))
}

/// Returns whether the last statement of a block parses. The compiler reports what is missing there at the closing brace.
///
/// What is missing before is reported at a token of the user's, so nothing needs to look for it here.
fn is_finished(block: &Group) -> bool {
    let trees = trees_of(&block.stream());
    let last = trees.iter().rposition(|tree| is_punct(tree, ';')).map_or(0, |semicolon| semicolon + 1);
    let read = |input: ParseStream<'_>| {
        Attribute::parse_inner(input)?;
        Block::parse_within(input)
    };
    read.parse2(trees[last..].iter().cloned().collect()).is_ok()
}
