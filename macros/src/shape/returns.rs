//! The `return`s of a function, without those of the closures, async blocks and items in it.

use syn::visit::Visit;
use syn::{ExprAsync, ExprClosure, ExprReturn, Item, Stmt};

use crate::diagnostic::SpanRange;

/// Returns the place of the first `return`.
pub(super) fn first(statements: &[Stmt]) -> Option<SpanRange> {
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
