//! The body of a function, and its block that waits for the decision.

use proc_macro2::{Group, Ident, TokenStream};
use quote::quote;
use syn::parse::Parser as _;
use syn::visit::Visit;
use syn::{Block, ExprAsync, ExprClosure, ExprReturn, Item, Local, Pat, Signature, Stmt};

use crate::diagnostic::SpanRange;
use crate::shape::async_block::AsyncBlock;
use crate::shape::insertion::{
    Additions, Insertion, Wrapper, count_declarations, count_rebindings, edit_behind_first, rebindings,
};
use crate::shape::tokens::{contents_at, edit_at, trees_of};

pub(super) struct Body {
    block: Group,
    kind: BodyKind,
}

enum BodyKind {
    /// The body of an `async fn`.
    Async,
    /// An async block at the end of the body, which the function returns as its future: `async move { … }`,
    /// `Box::pin(async move { … })`.
    Future(AsyncBlock),
    /// An async block from `#[async_trait]`, which begins by binding the arguments again.
    AsyncTrait(AsyncBlock, Vec<Local>),
    /// An async block that `#[tokio::test]` runs to its end: `let body = async { … };`.
    BlockedOn(AsyncBlock),
    Plain,
}

impl Body {
    pub(super) fn find(block: Group, signature: &Signature) -> Self {
        if signature.asyncness.is_some() {
            return Self { block, kind: BodyKind::Async };
        }
        let trees = trees_of(&block.stream());
        let kind = match AsyncBlock::at_end(&trees) {
            Some(future) => match rebindings(signature, &contents_at(&trees, &future.path)) {
                Some(rebindings) => BodyKind::AsyncTrait(future, rebindings),
                None => BodyKind::Future(future),
            },
            None => AsyncBlock::blocked_on(&trees).map_or(BodyKind::Plain, BodyKind::BlockedOn),
        };
        Self { block, kind }
    }

    pub(super) fn block(&self) -> &Group {
        &self.block
    }

    pub(super) fn is_plain(&self) -> bool {
        matches!(self.kind, BodyKind::Plain)
    }

    /// Returns whether the user's expressions are evaluated outside of the block that awaits the decision.
    pub(super) fn ends_with_async_block(&self) -> bool {
        matches!(self.kind, BodyKind::Future(_))
    }

    /// Returns whether the function returns a future without being async.
    pub(super) fn is_future(&self) -> bool {
        matches!(self.kind, BodyKind::Future(_) | BodyKind::AsyncTrait(..))
    }

    /// Returns the statements in which `#[async_trait]` binds the arguments again.
    pub(super) fn rebindings(&self) -> &[Local] {
        match &self.kind {
            BodyKind::AsyncTrait(_, rebindings) => rebindings,
            _ => &[],
        }
    }

    /// Returns the name that `#[async_trait]` has given to `self`.
    pub(super) fn renamed_self(&self) -> Option<&Ident> {
        self.rebindings().iter().find_map(|rebinding| match &rebinding.pat {
            Pat::Ident(binding) if binding.ident == "__self" => Some(&binding.ident),
            _ => None,
        })
    }

    /// Returns the first `return` before the async block, which returns a future without the check.
    pub(super) fn early_return(&self) -> Option<SpanRange> {
        let BodyKind::Future(future) = &self.kind else { return None };
        let statements = self.block.stream().into_iter().take(future.start).collect();
        let statements = Block::parse_within.parse2(statements).ok()?;
        first_return(&statements)
    }

    /// A future that the user wrote captures no argument for the check: the preparation runs when the function is
    /// called. So the future captures the same as without the attribute, and stays `Send`.
    pub(super) fn with_additions(&self, additions: &Additions) -> Group {
        let Additions { preparation, decision, permit, epilogue, .. } = additions;
        // A block hides what the preparation declares from the rest of the body.
        let decided = if preparation.is_empty() { decision } else { &quote!({ #preparation #decision }) };
        let kept = |decided: &TokenStream| quote!(let #permit = #decided;);
        let whole = Insertion { statements: kept(decided), epilogue: epilogue.as_ref(), wrapper: self.wrapper() };
        match &self.kind {
            BodyKind::Async | BodyKind::Plain => whole.before_statements(&self.block),
            BodyKind::AsyncTrait(future, _) => {
                edit_at(&self.block, &future.path, |block| whole.behind_first(count_rebindings, block))
            }
            BodyKind::BlockedOn(future) => edit_at(&self.block, &future.path, |block| whole.before_statements(block)),
            BodyKind::Future(future) => {
                let awaited = Insertion { statements: kept(decision), ..whole };
                let checked = edit_at(&self.block, &future.path, |block| awaited.before_statements(block));
                edit_behind_first(count_declarations, &checked, |rest| quote!(#preparation #rest))
            }
        }
    }

    /// A block within the body has to capture like the body: it owns the arguments or borrows them.
    fn wrapper(&self) -> Wrapper {
        match &self.kind {
            BodyKind::Plain => Wrapper::Closure,
            BodyKind::Future(future) | BodyKind::BlockedOn(future) if !future.moves => Wrapper::Async,
            _ => Wrapper::AsyncMove,
        }
    }
}

fn first_return(statements: &[Stmt]) -> Option<SpanRange> {
    let mut returns = Returns(None);
    for statement in statements {
        returns.visit_stmt(statement);
    }
    returns.0
}

struct Returns(Option<SpanRange>);

impl Visit<'_> for Returns {
    fn visit_expr_return(&mut self, found: &ExprReturn) {
        self.0.get_or_insert(SpanRange::from(found.return_token.span));
    }

    fn visit_expr_closure(&mut self, _: &ExprClosure) {}

    fn visit_expr_async(&mut self, _: &ExprAsync) {}

    fn visit_item(&mut self, _: &Item) {}
}
