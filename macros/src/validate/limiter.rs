//! Expressions that create a limiter.

use syn::visit::{Visit, visit_expr_call};
use syn::{Expr, ExprCall, ExprClosure};

/// Functions of `Limiter` that create one.
const CONSTRUCTORS: [&str; 4] = ["in_memory", "connect", "connect_lazy", "builder"];

/// Returns whether every evaluation of the expression creates a limiter.
pub(crate) fn creates_limiter(expression: &Expr) -> bool {
    let mut constructors = Constructors { found: false };
    constructors.visit_expr(expression);
    constructors.found
}

struct Constructors {
    found: bool,
}

impl Visit<'_> for Constructors {
    fn visit_expr_call(&mut self, call: &ExprCall) {
        if let Expr::Path(called) = &*call.func {
            let mut names = called.path.segments.iter().rev().map(|segment| &segment.ident);
            let is_constructor = names.next().is_some_and(|name| CONSTRUCTORS.iter().any(|known| name == known));
            self.found |= is_constructor && names.next().is_some_and(|type_name| type_name == "Limiter");
        }
        visit_expr_call(self, call);
    }

    // A closure may run only once: `LIMITER.get_or_init(|| Limiter::in_memory())`.
    fn visit_expr_closure(&mut self, _: &ExprClosure) {}
}

#[cfg(test)]
mod tests {
    use syn::parse_str;

    use super::creates_limiter;

    #[test]
    fn a_limiter_that_each_call_creates_differs_from_one_that_is_kept() {
        for created in [
            "Limiter::in_memory()",
            "&tallygate::Limiter::in_memory()",
            "Limiter::connect(&url).await?",
            "Limiter::builder().prefix(\"shop\").connect_lazy(URL).unwrap()",
        ] {
            assert!(creates_limiter(&parse_str(created).unwrap()), "{created}");
        }
        for kept in [
            "self.limiter",
            "Limiter::installed()",
            "LIMITER.get_or_init(Limiter::in_memory)",
            "LIMITER.get_or_init(|| Limiter::in_memory())",
            "limiters.connect(user)",
            "Shards::connect(user)",
        ] {
            assert!(!creates_limiter(&parse_str(kept).unwrap()), "{kept}");
        }
    }
}
