//! Where in a body the check goes: in front of what only runs when the call is admitted.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::parse::discouraged::Speculative as _;
use syn::parse::{Parse, ParseBuffer, ParseStream, Parser as _};
use syn::visit::Visit;
use syn::{Attribute, Block, ExprAsync, ExprClosure, ExprReturn, Item, Local, Pat, Signature, Stmt};

use super::async_block::AsyncBlock;
use super::{Around, is_punct, trees_of};
use crate::diagnostic::Place;

/// A body, in which the block is found that waits for the limiter's answer.
pub(super) struct Body {
    block: Group,
    kind: Kind,
}

enum Kind {
    /// The body of an `async fn`.
    Async,
    /// A future, made of an async block at the end of the body: `async move { … }`, `Box::pin(async move { … })`.
    Future(AsyncBlock),
    /// The same, as `#[async_trait]` has written it: the block starts with the arguments, bound anew.
    AsyncTrait(AsyncBlock, Vec<Pat>),
    /// An async block that is run to its end, as `#[tokio::test]` has written it: `let body = async { … };`.
    BlockedOn(AsyncBlock),
    /// Nothing that could wait.
    Plain,
}

impl Body {
    pub(super) fn find(block: Group, signature: &Signature) -> Self {
        let trees = trees_of(&block.stream());
        let kind = if signature.asyncness.is_some() {
            Kind::Async
        } else if let Some(future) = AsyncBlock::at_end(&trees) {
            match rebound(signature, &group_at(&trees, &future.path)) {
                Some(rebound) => Kind::AsyncTrait(future, rebound),
                None => Kind::Future(future),
            }
        } else {
            AsyncBlock::blocked_on(&trees).map_or(Kind::Plain, Kind::BlockedOn)
        };
        Self { block, kind }
    }

    pub(super) fn can_wait(&self) -> bool {
        !matches!(self.kind, Kind::Plain)
    }

    /// Returns whether what names arguments and what waits stand apart.
    pub(super) fn is_split(&self) -> bool {
        matches!(self.kind, Kind::Future(_))
    }

    /// Returns whether a future is what the function returns.
    pub(super) fn is_future(&self) -> bool {
        matches!(self.kind, Kind::Future(_) | Kind::AsyncTrait(..))
    }

    /// Returns the patterns that bind the arguments anew.
    pub(super) fn rebound(&self) -> impl Iterator<Item = &Pat> {
        match &self.kind {
            Kind::AsyncTrait(_, rebound) => rebound.as_slice(),
            _ => &[],
        }
        .iter()
    }

    /// Returns what is called `self` no more.
    pub(super) fn renamed_self(&self) -> Option<Ident> {
        self.rebound().find_map(|pattern| match pattern {
            Pat::Ident(binding) if binding.ident == "__self" => Some(binding.ident.clone()),
            _ => None,
        })
    }

    /// Returns the first `return` of another future than the one that is checked.
    pub(super) fn early_return(&self) -> Option<Place> {
        let Kind::Future(future) = &self.kind else { return None };
        let statements = self.block.stream().into_iter().take(future.start).collect();
        let statements = Block::parse_within.parse2(statements).ok()?;
        let mut returns = Returns(None);
        for statement in &statements {
            returns.visit_stmt(statement);
        }
        returns.0
    }

    /// Returns the body with the check in it.
    ///
    /// A future of the user's own keeps no argument for the check: what names arguments stands where the function is
    /// called, so that the future captures what it did, and is `Send` when it was.
    pub(super) fn with(&self, before: &TokenStream, check: &TokenStream, around: Option<&Around>) -> Group {
        let both = Check { statements: quote!(#before #check), around, keyword: self.keyword() };
        match &self.kind {
            Kind::Async | Kind::Plain => both.in_front(&self.block),
            Kind::AsyncTrait(future, _) => edited(&self.block, &future.path, |block| both.behind(rebindings, block)),
            Kind::BlockedOn(future) => edited(&self.block, &future.path, |block| both.in_front(block)),
            Kind::Future(future) => {
                let check = Check { statements: check.clone(), ..both };
                let checked = edited(&self.block, &future.path, |block| check.in_front(block));
                behind(declarations, &checked, |rest| quote!(#before #rest))
            }
        }
    }

    /// How a block within the body's captures what the body's does, which owns its arguments or borrows them.
    fn keyword(&self) -> TokenStream {
        match &self.kind {
            Kind::Future(future) | Kind::BlockedOn(future) if !future.moves => quote!(async),
            _ => quote!(async move),
        }
    }
}

/// Returns the same group around other tokens.
pub(super) fn filled(group: &Group, tokens: TokenStream) -> Group {
    let mut filled = Group::new(group.delimiter(), tokens);
    filled.set_span(group.span());
    filled
}

/// The check, as it is put into a block.
struct Check<'a> {
    statements: TokenStream,
    around: Option<&'a Around>,
    /// Makes a block of the body, where something is done behind it.
    keyword: TokenStream,
}

impl Check<'_> {
    /// Puts the check in front of the statements of a block.
    ///
    /// A block that is unfinished stays the tokens that it is, within another: what is missing in it the compiler has told
    /// before, and tells only once when all the places are the same.
    fn in_front(&self, block: &Group) -> Group {
        if is_finished(block) {
            self.behind(declarations, block)
        } else {
            self.behind(|_| 0, &filled(block, block.to_token_stream()))
        }
    }

    /// Puts the check behind the first tokens of a block, and around the others what there is to do behind them.
    fn behind(&self, first: fn(TokenStream) -> usize, block: &Group) -> Group {
        let Self { statements, around, keyword } = self;
        behind(first, block, |rest| match around {
            None => quote!({ #statements } #rest),
            Some(Around { permit, result, within, behind }) => {
                let body = filled(block, quote!(#within #rest));
                quote!(let #permit = { #statements }; let #result = #keyword #body.await; #behind)
            }
        })
    }
}

/// Whether the last statement of a block parses: what is missing there, the compiler tells at the brace behind it.
///
/// What is missing before, it tells at a token of the user's, which no parser of ours need look for.
fn is_finished(block: &Group) -> bool {
    let trees = trees_of(&block.stream());
    let ended = trees.iter().rposition(|tree| is_punct(tree, ';')).map_or(0, |last| last + 1);
    let read = |input: ParseStream<'_>| {
        Attribute::parse_inner(input)?;
        Block::parse_within(input)
    };
    read.parse2(trees[ended..].iter().cloned().collect()).is_ok()
}

/// Edits what stands behind the first tokens of a block, as many as are counted.
fn behind(first: fn(TokenStream) -> usize, block: &Group, edit: impl FnOnce(TokenStream) -> TokenStream) -> Group {
    let mut trees = trees_of(&block.stream());
    let rest = edit(trees.split_off(first(block.stream())).into_iter().collect());
    filled(block, quote!(#(#trees)* #rest))
}

/// Edits the group at the end of a path of positions, one for each depth.
fn edited(outer: &Group, path: &[usize], edit: impl FnOnce(&Group) -> Group) -> Group {
    let Some((&at, path)) = path.split_first() else { return edit(outer) };
    let mut trees = trees_of(&outer.stream());
    if let Some(TokenTree::Group(inner)) = trees.get_mut(at) {
        *inner = edited(inner, path, edit);
    }
    filled(outer, trees.into_iter().collect())
}

/// Returns what stands in the group at the end of a path.
fn group_at(trees: &[TokenTree], path: &[usize]) -> TokenStream {
    let Some((&at, path)) = path.split_first() else { return trees.iter().cloned().collect() };
    match trees.get(at) {
        Some(TokenTree::Group(group)) => group_at(&trees_of(&group.stream()), path),
        _ => TokenStream::new(),
    }
}

/// Counts the tokens of the inner attributes and items at the start of a body.
///
/// They do nothing, and behind a statement the former would be errors and the latter a lint's.
fn declarations(body: TokenStream) -> usize {
    count_first(
        body,
        |input| Attribute::parse_inner(input).map(drop),
        |item: &Item| match item {
            // A macro call may do something.
            Item::Macro(call) => call.ident.is_some(),
            _ => true,
        },
    )
}

/// Counts the tokens of the statements by which `#[async_trait]` binds the arguments anew.
fn rebindings(body: TokenStream) -> usize {
    count_first(body, |_| Ok(()), |statement: &Stmt| !is_result(statement))
}

/// Returns the patterns of those statements, if it is `#[async_trait]` that has written them.
fn rebound(signature: &Signature, body: &TokenStream) -> Option<Vec<Pat>> {
    signature.generics.lifetimes().find(|parameter| parameter.lifetime.ident == "async_trait")?;
    let statements = Block::parse_within.parse2(body.clone()).ok()?;
    let result = statements.iter().position(is_result)?;
    let pattern = |statement| if let Stmt::Local(local) = statement { Some(local.pat) } else { None };
    Some(statements.into_iter().take(result).filter_map(pattern).collect())
}

/// Whether it is the statement of `#[async_trait]` that holds the user's body: `let __ret: Ret = { … };`.
fn is_result(statement: &Stmt) -> bool {
    let Stmt::Local(Local { pat: Pat::Type(typed), .. }) = statement else { return false };
    matches!(&*typed.pat, Pat::Ident(binding) if binding.ident == "__ret")
}

/// Counts the tokens of what is read at the start, and of everything behind it that is alike.
fn count_first<T: Parse>(
    body: TokenStream,
    start: fn(ParseStream<'_>) -> syn::Result<()>,
    alike: fn(&T) -> bool,
) -> usize {
    let all = body.clone().into_iter().count();
    let read = |input: ParseStream<'_>| {
        start(input)?;
        while let Some(behind) = behind_one(input, alike) {
            input.advance_to(&behind);
        }
        input.parse::<TokenStream>()
    };
    read.parse2(body).map_or(0, |rest| all.saturating_sub(rest.into_iter().count()))
}

fn behind_one<T: Parse>(input: ParseStream<'_>, alike: fn(&T) -> bool) -> Option<ParseBuffer<'_>> {
    let ahead = input.fork();
    ahead.parse::<T>().is_ok_and(|read| alike(&read)).then_some(ahead)
}

/// The `return`s of a function, without those of closures, async blocks and items within it.
struct Returns(Option<Place>);

impl Visit<'_> for Returns {
    fn visit_expr_return(&mut self, found: &ExprReturn) {
        self.0.get_or_insert(Place::from(found.return_token.span));
    }

    fn visit_expr_closure(&mut self, _: &ExprClosure) {}

    fn visit_expr_async(&mut self, _: &ExprAsync) {}

    fn visit_item(&mut self, _: &Item) {}
}
