//! Limiters that are made where they are asked: each call would have one of its own, which has counted nothing.

use syn::visit::{Visit, visit_expr_call};
use syn::{Expr, ExprCall, ExprClosure};

const MAKERS: [&str; 4] = ["in_memory", "connect", "connect_lazy", "builder"];

/// Returns whether every evaluation of the expression makes a limiter.
pub(crate) fn is_made_anew(limiter: &Expr) -> bool {
    let mut made = Made(false);
    made.visit_expr(limiter);
    made.0
}

struct Made(bool);

impl Visit<'_> for Made {
    fn visit_expr_call(&mut self, call: &ExprCall) {
        if let Expr::Path(called) = &*call.func {
            let mut names = called.path.segments.iter().rev().map(|segment| &segment.ident);
            let makes = names.next().is_some_and(|name| MAKERS.iter().any(|maker| name == maker));
            self.0 |= makes && names.next().is_some_and(|of| of == "Limiter");
        }
        visit_expr_call(self, call);
    }

    // What a closure makes may be made once: `LIMITER.get_or_init(|| Limiter::in_memory())`.
    fn visit_expr_closure(&mut self, _: &ExprClosure) {}
}

#[cfg(test)]
mod tests {
    use syn::parse_str;

    use super::is_made_anew;

    #[test]
    fn a_limiter_that_every_call_makes_is_told_from_one_that_is_kept() {
        for made in [
            "Limiter::in_memory()",
            "&tallygate::Limiter::in_memory()",
            "Limiter::connect(&url).await?",
            "Limiter::builder().prefix(\"shop\").connect_lazy(URL).unwrap()",
        ] {
            assert!(is_made_anew(&parse_str(made).unwrap()), "{made}");
        }
        for kept in [
            "self.limiter",
            "Limiter::installed()",
            "LIMITER.get_or_init(Limiter::in_memory)",
            "LIMITER.get_or_init(|| Limiter::in_memory())",
            "limiters.connect(user)",
            "Shards::connect(user)",
        ] {
            assert!(!is_made_anew(&parse_str(kept).unwrap()), "{kept}");
        }
    }
}
