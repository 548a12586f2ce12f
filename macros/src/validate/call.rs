//! Checks of the arguments that apply to the whole call.

use tallygate_rules::Role;

use crate::attr::{Amount, number};
use crate::diagnostic::{Diagnostics, SpanRange};
use crate::model::Model;
use crate::validate::limiter::creates_limiter;

/// Reports a cost that counts nothing, or that no rule ever admits.
pub(super) fn check_cost(model: &Model, diagnostics: &mut Diagnostics) {
    if let Some(span) = model.allow_zero_cost.filter(|_| !matches!(model.cost, Some(Amount::Expression(_)))) {
        let message = "`allow_zero_cost` is for a `cost` that depends on the arguments, like \
                       `cost = items.len() as u64`; remove it, or add one";
        diagnostics.report(span, message);
    }
    let Some(Amount::Literal(literal)) = &model.cost else { return };
    let cost = number(literal);
    let span = SpanRange::from(literal.span());
    if cost == 0 {
        diagnostics.report(span, "`cost` must be at least 1, like `cost = 3`; to exempt calls, use `skip_if`");
    }
    let known = model.rules.iter().filter(|rule| rule.written.complete && rule.count.is_none());
    let strictest = known.map(|rule| &rule.rule).min_by_key(|rule| rule.greatest_cost());
    if let Some(rule) = strictest.filter(|rule| cost > rule.greatest_cost()) {
        let greatest = rule.greatest_cost();
        let message = format!(
            "no call of this `cost` is ever admitted: `{rule:#}` admits at most {greatest} at once; lower the `cost`"
        );
        diagnostics.report(span, message);
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

/// Reports a refund where nothing is counted that could be given back.
pub(super) fn check_refund(model: &Model, diagnostics: &mut Diagnostics) {
    let Some(refund_if) = &model.refund_if else { return };
    let only_concurrency = model.rules.iter().all(|rule| rule.rule.role() == Role::Concurrency);
    if only_concurrency && !model.rules.is_empty() {
        let message = "`refund_if` needs a rule that counts calls, like `rule(count = 10, per = \"60s\")`: what \
                       `concurrency` counts ends with each call; remove it, or add a rule";
        diagnostics.report(SpanRange::of_tokens(refund_if), message);
    }
}

/// Reports a settlement that nothing was reserved for, or that another argument stands in the way of.
pub(super) fn check_settle(model: &Model, diagnostics: &mut Diagnostics) {
    let Some(settle) = &model.settle else { return };
    let span = SpanRange::of_tokens(settle);
    if let Some(zero) = model.allow_zero_cost {
        let message = "`settle` needs a cost of 1 or more, for which it settles; remove `allow_zero_cost`";
        diagnostics.report(zero, message);
    }
    if model.release().is_some() {
        let message = "`settle` and `release_if` exclude each other: a call is settled or released; remove one";
        diagnostics.report(span, message);
    }
    if model.policy.is_none() && model.rules.iter().all(|rule| rule.rule.role() != Role::Limit) {
        let message = "`settle` needs a rule that counts costs, like `rule(count = 10000, per = \"60s\")`";
        diagnostics.report(span, message);
    }
}

/// Reports a limiter that each call creates.
pub(super) fn check_limiter(model: &Model, diagnostics: &mut Diagnostics) {
    if let Some(limiter) = model.limiter.as_ref().filter(|limiter| creates_limiter(limiter)) {
        let message = "each call creates a limiter of its own here, which has counted nothing; create one and keep it, \
                       like `limiter = self.limiter`";
        diagnostics.report(SpanRange::of_tokens(limiter), message);
    }
}
