//! Checks of the arguments that apply to the whole call, and of when it ends.

use syn::visit::{Visit, visit_expr_call};
use syn::{Expr, ExprCall, ExprClosure, LitInt};
use tallygate_rules::{CALLS, Role, nearest, remedy};

use crate::attr::{Amount, number};
use crate::diagnostic::{Diagnostics, SpanRange};
use crate::model::{CountingSubject, Model, RuleModel};
use crate::shape::Function;
use crate::template::SpannedTemplate;

/// Reports a cost that counts nothing, or that no rule ever admits.
pub(super) fn check_cost(model: &Model, diagnostics: &mut Diagnostics) {
    if let Some(span) = model.allow_zero_cost.filter(|_| !matches!(model.cost, Some(Amount::Expression(_)))) {
        let message = "`allow_zero_cost` is for a `cost` that depends on the arguments, like \
                       `cost = items.len() as u64`; remove it, or add one";
        diagnostics.report(span, message);
    }
    let Some(Amount::Literal(literal)) = &model.cost else { return };
    if number(literal) == 0 {
        let message = "`cost` must be at least 1, like `cost = 3`; to exempt calls, use `skip_if`";
        diagnostics.report(literal.span(), message);
    }
    check_admissible(literal, None, model, diagnostics);
}

/// Reports a cost in a unit that no rule of the unit ever admits.
pub(super) fn check_admissible(literal: &LitInt, unit: Option<&str>, model: &Model, diagnostics: &mut Diagnostics) {
    let cost = number(literal);
    let known = model.rules.iter().filter(|rule| rule.written.complete && rule.count.is_none());
    let of_unit = known.map(|rule| &rule.rule).filter(|rule| rule.unit() == unit);
    let strictest = of_unit.min_by_key(|rule| rule.greatest_cost());
    if let Some(rule) = strictest.filter(|rule| cost > rule.greatest_cost()) {
        let greatest = rule.greatest_cost();
        let message = format!(
            "no call of this `cost` is ever admitted: `{rule:#}` admits at most {greatest} at once; lower the `cost`"
        );
        diagnostics.report(literal.span(), message);
    }
}

/// Reports a wait that is zero, or that is never used.
pub(super) fn check_wait(model: &Model, diagnostics: &mut Diagnostics) {
    let Some(wait) = &model.wait else { return };
    if wait.value.is_zero() {
        diagnostics
            .report(wait.span, "`wait` must be longer than zero, like `wait = \"2s\"`; without `wait`, no call waits");
    }
    if model.shadow.is_some() {
        let message = "`wait` and `shadow` exclude each other: in shadow, every call runs at once; remove one";
        diagnostics.report(wait.span, message);
    }
}

/// Reports a `settle` that no rule counts, or beside an argument that excludes it.
pub(super) fn check_settle(model: &Model, diagnostics: &mut Diagnostics) {
    for span in model.settlement_spans().filter(|_| model.release().is_some()) {
        let message = "`settle` and `release_if` exclude each other: a call is settled or released; remove one";
        diagnostics.report(span, message);
    }
    let Some(settle) = &model.settle else { return };
    if matches!(settle, Expr::Path(path) if path.path.is_ident("metered")) {
        let message = "a unit is metered, and `settle` beside the rules is about calls; write `unit(\"tokens\", settle = metered)`";
        diagnostics.report(SpanRange::of_tokens(settle), message);
    }
    if let Some(zero) = model.allow_zero_cost {
        let message = "`settle` needs a cost of 1 or more, for which it settles; remove `allow_zero_cost`";
        diagnostics.report(zero, message);
    }
    if model.policy.is_none() && !model.rules.iter().any(RuleModel::counts_costs) {
        let message = "`settle` needs a rule that counts costs, like `rule(count = 10000, per = \"60s\")`";
        diagnostics.report(SpanRange::of_tokens(settle), message);
    }
}

pub(super) fn check_limiter(model: &Model, diagnostics: &mut Diagnostics) {
    if let Some(limiter) = model.limiter.as_ref().filter(|limiter| creates_limiter(limiter)) {
        let message = "each call creates a limiter of its own here, which has counted nothing; create one and keep it, \
                       like `limiter = self.limiter`";
        diagnostics.report(SpanRange::of_tokens(limiter), message);
    }
}

/// Functions of `Limiter` that create one.
const CONSTRUCTORS: [&str; 4] = ["in_memory", "connect", "connect_lazy", "builder"];

/// Returns whether each evaluation of the expression creates a limiter.
fn creates_limiter(expression: &Expr) -> bool {
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

/// Reports a function whose response no framework sends.
pub(super) fn check_until_async(model: &Model, function: &Function, diagnostics: &mut Diagnostics) {
    if let Some(until) = model.until_body.filter(|_| function.is_blocking()) {
        let name = &function.signature.ident;
        let message = format!(
            "`until = \"body\"` is for handlers of web frameworks, and this function is not async; write `async fn {name}`, \
             or remove `until`"
        );
        diagnostics.report(until, message);
    }
}

/// Reports `until = "body"` where no call lasts longer for it.
pub(super) fn check_until_lasts(model: &Model, diagnostics: &mut Diagnostics) {
    let Some(until) = model.until_body.filter(|_| model.policy.is_none() && model.complete) else { return };
    let has_concurrency = model.rules.iter().any(|rule| rule.rule.role() == Role::Concurrency);
    if !has_concurrency && !model.is_settled() {
        let message = "`until = \"body\"` is for calls that count while they run, and here they count when they are admitted; \
                       add `concurrency(limit = 10, lease = \"30s\")` or `unit(\"tokens\", settle = metered)`, or remove it";
        diagnostics.report(until, message);
    }
}

/// Reports a `settle` that comes before the body has used anything.
pub(super) fn check_settled_before_body(model: &Model, diagnostics: &mut Diagnostics) {
    for (unit, settle) in model.settlements().filter(|_| model.until_body.is_some()) {
        let metered = if unit == CALLS { "make it a unit that is metered" } else { "meter it" };
        let unit = if unit == CALLS { "tokens" } else { unit };
        let message = format!(
            "`settle` sees the response before its body has used anything; {metered}, `unit({unit:?}, settle = metered)`, and \
             add what the body uses to `tallygate::meter({unit:?})`"
        );
        diagnostics.report(SpanRange::of_tokens(settle), message);
    }
}

/// Reports `refund_if` beside `concurrency` alone, whose count ends with each call.
pub(super) fn check_refund_counted(model: &Model, diagnostics: &mut Diagnostics) {
    let Some(refund_if) = &model.refund_if else { return };
    let only_concurrency = model.rules.iter().all(|rule| rule.rule.role() == Role::Concurrency);
    if only_concurrency && !model.rules.is_empty() {
        let message = "`refund_if` needs a rule that counts calls, like `rule(count = 10, per = \"60s\")`: what \
                       `concurrency` counts ends with each call; remove it, or add a rule";
        diagnostics.report(SpanRange::of_tokens(refund_if), message);
    }
}

/// Reports a `refund_key` that the call does not have, that is its only subject, or that another argument excludes.
pub(super) fn check_refund_subject(model: &Model, diagnostics: &mut Diagnostics) {
    let Some(key) = &model.refund_key else { return };
    if model.release().is_some() {
        let message = "`refund_key` and `release_if` exclude each other: a call is refunded or released on one subject; \
                       remove one";
        diagnostics.report(key.span, message);
    } else if model.is_settled() {
        let message = "`refund_key` and `settle` exclude each other: the other subjects of a refunded call would keep the \
                       reserved `cost`; remove one";
        diagnostics.report(key.span, message);
    } else if let Some(message) = mistaken_key(key, model).filter(|_| are_known(model)) {
        diagnostics.report(key.span, message);
    }
}

fn are_known(model: &Model) -> bool {
    let has_main = model.has_key == model.key.is_some();
    let has_others = model.subjects.iter().all(|subject| subject.key.is_some());
    model.complete && has_main && has_others && model.are_rules_complete()
}

fn mistaken_key(key: &SpannedTemplate, model: &Model) -> Option<String> {
    let subjects = model.counting_subjects();
    let named = subjects.iter().filter(|subject| subject.has_key(&key.text)).count();
    match (subjects.len(), named) {
        // Another check reports a policy that counts nothing.
        (0, _) => None,
        (1, _) => Some("`refund_key` chooses one of several subjects, and this call has one; remove it".to_owned()),
        (_, 0) => Some(unknown_key(&key.text, model, &subjects)),
        (_, 1) => None,
        _ => Some(format!(
            "several subjects have the key `{0}`; write one of them in another way, like `of:{0}`",
            key.text
        )),
    }
}

fn unknown_key(text: &str, model: &Model, subjects: &[CountingSubject<'_>]) -> String {
    let labelled = subjects.iter().find(|subject| subject.label == Some(text));
    let keys: Vec<_> = subjects.iter().filter_map(|subject| Some(&*subject.key?.text)).collect();
    let meant = labelled.and_then(|subject| Some(&*subject.key?.text)).or_else(|| nearest(text, keys.iter().copied()));
    let remedy = remedy(meant, "write one of", &keys);
    let lacking = if model.policy.is_some() { "no subject of the call" } else { "no rule that counts calls" };
    format!("{lacking} has the key `{text}`; {remedy}")
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
