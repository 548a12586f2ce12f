//! Checks of the arguments that apply to the whole call.

use crate::attr::Amount;
use crate::diagnostic::{Mistakes, Place};
use crate::limiter::creates_limiter;
use crate::model::Model;
use crate::rule::number;

/// Reports a cost that counts nothing, or that no rule ever admits.
pub(super) fn check_cost(model: &Model, mistakes: &mut Mistakes) {
    let Some(Amount::Literal(literal)) = &model.cost else { return };
    let (cost, place) = (number(literal), Place::from(literal.span()));
    if cost == 0 {
        mistakes.report(place, "`cost` must be at least 1, like `cost = 3`; to exempt calls, use `skip_if`");
    }
    let known = model.rules.iter().filter(|rule| rule.complete && rule.count.is_none());
    let strictest = known.map(|rule| &rule.rule).min_by_key(|rule| rule.greatest_cost());
    if let Some(rule) = strictest.filter(|rule| cost > rule.greatest_cost()) {
        let greatest = rule.greatest_cost();
        let message = format!(
            "no call of this `cost` is ever admitted: `{rule:#}` admits at most {greatest} at once; lower the `cost`"
        );
        mistakes.report(place, message);
    }
}

/// Reports a wait that is zero, or that is never used.
pub(super) fn check_wait(model: &Model, mistakes: &mut Mistakes) {
    let Some(wait) = &model.wait else { return };
    if wait.value.is_zero() {
        mistakes
            .report(wait.place, "`wait` must be longer than zero, like `wait = \"2s\"`; without `wait`, no call waits");
    }
    if model.shadow.is_some() {
        let message = "`wait` and `shadow` exclude each other: in shadow, every call runs at once; remove one";
        mistakes.report(wait.place, message);
    }
}

/// Reports a limiter that each call creates.
pub(super) fn check_limiter(model: &Model, mistakes: &mut Mistakes) {
    if let Some(limiter) = model.limiter.as_ref().filter(|limiter| creates_limiter(limiter)) {
        let message = "each call creates a limiter of its own here, which has counted nothing; create one and keep it, \
                       like `limiter = self.limiter`";
        mistakes.report(Place::of(limiter), message);
    }
}
