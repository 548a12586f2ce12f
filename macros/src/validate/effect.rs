//! Checks of arguments without an effect, or that leave nothing of the limit.

use syn::{Expr, ExprBlock, ExprClosure, ExprLit, ExprParen, Lit, Stmt};
use tallygate_rules::{CALLS, Role};

use crate::attr::number;
use crate::diagnostic::{Diagnostics, SpanRange};
use crate::model::{Model, RuleModel};

/// The types whose `MAX` limits nothing.
const NUMBERS: [&str; 6] = ["u8", "u16", "u32", "u64", "u128", "usize"];

/// Reports a `skip_if` that is always true or always false.
pub(super) fn check_skip(model: &Model, diagnostics: &mut Diagnostics) {
    let Some(skip_if) = &model.skip_if else { return };
    let message = match constant(skip_if) {
        Some(Lit::Bool(always)) if always.value => {
            "`skip_if = true` leaves no call to limit; write what the exempt calls have in common, like \
             `skip_if = user.is_admin()`, or remove the attribute"
        }
        Some(Lit::Bool(_)) => "`skip_if = false` skips no call; remove it",
        _ => return,
    };
    diagnostics.report(SpanRange::of_tokens(skip_if), message);
}

/// Reports conditions and settlements that do not depend on the result of the call.
pub(super) fn check_results_used(model: &Model, diagnostics: &mut Diagnostics) {
    let refund = model.refund_if.as_ref().and_then(|refund_if| {
        let message = match returned(refund_if)? {
            Lit::Bool(always) if always.value => {
                "every call is refunded, so the rules limit nothing but concurrent calls; write \
                 `concurrency(limit = 10, lease = \"30s\")` for those, or a condition, like `refund_if = Result::is_err`"
            }
            Lit::Bool(_) => "no call is refunded; remove `refund_if`",
            _ => return None,
        };
        Some((refund_if, message))
    });
    // A release after every call is allowed: then only concurrent submissions are duplicates.
    let release = model.release().and_then(|release| match returned(release.condition)? {
        Lit::Bool(never) if !never.value => Some((release.condition, "no duplicate is released; remove `release_if`")),
        _ => None,
    });
    let settle = model.settlements().filter_map(|(unit, settle)| {
        let message = match returned(settle)? {
            Lit::Int(used) if number(used) == 0 && unit == CALLS => {
                "every call is settled for 0, so the rules limit nothing but concurrent calls; write what it has used, like \
                 `settle = |reply| reply.tokens()`"
            }
            Lit::Int(used) if number(used) == 0 => {
                "every call is settled for 0, so no rule of the unit limits anything; write what it has used, like \
                 `settle = |reply| reply.tokens()`"
            }
            Lit::Int(used) if model.known_cost(unit) == Some(number(used)) => {
                "every call is settled for its cost; remove `settle`"
            }
            _ => return None,
        };
        Some((settle, message))
    });
    for (function, message) in refund.into_iter().chain(release).chain(settle) {
        diagnostics.report(SpanRange::of_tokens(function), message);
    }
}

pub(super) fn check_cost_counted(model: &Model, diagnostics: &mut Diagnostics) {
    let Some(cost) = model.cost.as_ref().filter(|_| model.policy.is_none() && !model.rules.is_empty()) else { return };
    if model.complete && !model.rules.iter().any(RuleModel::counts_costs) {
        let message = "`cost` needs a rule that counts it, like `rule(count = 10, per = \"60s\")`: `prevent_duplicate` and \
                       `concurrency` count calls; remove it, or add a rule";
        diagnostics.report(cost.span(), message);
    }
}

pub(super) fn check_counts_limit(model: &Model, diagnostics: &mut Diagnostics) {
    let of_rule = |rule: &RuleModel| rule.count.clone().filter(is_greatest).map(|count| (rule.rule.role(), count));
    for (role, count) in model.rules.iter().filter_map(of_rule) {
        let argument = if role == Role::Concurrency { "limit" } else { "count" };
        let message =
            format!("this `{argument}` limits nothing; write a number, like `{argument} = 10`, or remove the limit");
        diagnostics.report(SpanRange::of_tokens(&count), message);
    }
}

/// Returns whether the count is `u64::MAX` or that of another type, like `u32::MAX as u64` and `u32::MAX.into()`.
fn is_greatest(count: &Expr) -> bool {
    let path = match count {
        Expr::Path(path) => path,
        Expr::Cast(cast) => return is_greatest(&cast.expr),
        Expr::Paren(paren) => return is_greatest(&paren.expr),
        Expr::MethodCall(call) => return call.method == "into" && is_greatest(&call.receiver),
        _ => return false,
    };
    let mut names = path.path.segments.iter().rev().map(|segment| &segment.ident);
    let is_max = names.next().is_some_and(|name| name == "MAX");
    is_max && names.next().is_some_and(|of| NUMBERS.iter().any(|number| of == number))
}

/// Returns the literal that a closure returns for any input.
fn returned(function: &Expr) -> Option<&Lit> {
    match function {
        Expr::Closure(ExprClosure { body, .. }) => constant(body),
        Expr::Paren(ExprParen { expr, .. }) => returned(expr),
        _ => None,
    }
}

/// Returns the literal of an expression, also in parentheses or in a block.
fn constant(expression: &Expr) -> Option<&Lit> {
    match expression {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        Expr::Paren(ExprParen { expr, .. }) => constant(expr),
        Expr::Block(ExprBlock { block, .. }) => match &block.stmts[..] {
            [Stmt::Expr(last, None)] => constant(last),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_str;

    use super::{is_greatest, returned};

    #[test]
    fn a_closure_that_ignores_its_argument_is_distinguished_from_one_that_does_not() {
        let is_constant = |text: &str| returned(&parse_str(text).unwrap()).is_some();
        for constant in ["|_| false", "|_: &T| { true }", "(|_| (0))", "|reply| -> u64 { 3 }"] {
            assert!(is_constant(constant), "{constant}");
        }
        for function in ["Result::is_err", "|reply| reply.is_err()", "|_| cfg!(test)", "|_| { log(); false }"] {
            assert!(!is_constant(function), "{function}");
        }
    }

    #[test]
    fn the_greatest_number_of_a_type_is_distinguished_from_a_constant() {
        for greatest in
            ["u64::MAX", "std::primitive::u32::MAX", "std::u64::MAX", "usize::MAX as u64", "(u32::MAX).into()"]
        {
            assert!(is_greatest(&parse_str(greatest).unwrap()), "{greatest}");
        }
        for count in ["MAX", "limits::MAX", "u64::MAX / 2", "user.calls()", "user.calls() as u64"] {
            assert!(!is_greatest(&parse_str(count).unwrap()), "{count}");
        }
    }
}
