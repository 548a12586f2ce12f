//! Checks of units: what a call uses, and what rules count of it.

use tallygate_rules::{Field, nearest, remedy};

use crate::attr::{Amount, number};
use crate::diagnostic::Diagnostics;
use crate::model::{Model, RuleModel, UnitModel};
use crate::validate::call::check_admissible;

pub(super) fn check_units(model: &Model, diagnostics: &mut Diagnostics) {
    for (position, unit) in model.units.iter().enumerate() {
        check_distinct(unit, &model.units[..position], diagnostics);
        check_used(unit, diagnostics);
        check_cost(unit, model, diagnostics);
    }
    if model.policy.is_none() {
        check_declared(model, diagnostics);
        check_counted(model, diagnostics);
    }
}

fn check_distinct(unit: &UnitModel, earlier: &[UnitModel], diagnostics: &mut Diagnostics) {
    let Some(name) = &unit.name else { return };
    if earlier.iter().any(|other| other.name() == Some(&name.value)) {
        diagnostics.report(name.span, format_args!("the unit `{}` is declared twice; remove one", name.value));
    }
}

/// Reports a unit of which no call uses any.
fn check_used(unit: &UnitModel, diagnostics: &mut Diagnostics) {
    let is_read = unit.written.all_known && unit.written.complete;
    if let (Some(name), None, None, true) = (unit.name(), &unit.cost, &unit.settle, is_read) {
        let message = format!(
            "no call uses any `{name}`; add what it costs before it runs, like `cost = request.max_tokens`, or what it has \
             used, like `settle = |reply| reply.tokens()`"
        );
        diagnostics.report(unit.written.span, message);
    }
}

/// Reports a cost that uses nothing, or that no rule ever admits.
fn check_cost(unit: &UnitModel, model: &Model, diagnostics: &mut Diagnostics) {
    let (Some(name), Some(Amount::Literal(literal))) = (unit.name(), &unit.cost) else { return };
    if number(literal) == 0 {
        let message = "a `cost` of 0 reserves nothing; remove it, so that a call is admitted while anything of the unit is left, or \
                       write a greater one, like `cost = 3`";
        diagnostics.report(literal.span(), message);
    }
    check_admissible(literal, Some(name), model, diagnostics);
}

/// Reports a rule that counts a unit of which no call uses any.
fn check_declared(model: &Model, diagnostics: &mut Diagnostics) {
    if model.units.iter().any(|unit| unit.name.is_none()) {
        // The unit may be the one that is meant.
        return;
    }
    let declared: Vec<_> = model.units.iter().filter_map(UnitModel::name).collect();
    for rule in &model.rules {
        let Some(unit) = rule.rule.unit().filter(|unit| !declared.contains(unit)) else { continue };
        let remedy = match &declared[..] {
            [] => format!("add what a call uses of it, like `unit({unit:?}, cost = request.{unit})`"),
            declared => {
                let otherwise = format!("add `unit({unit:?}, cost = …)`, or write one of");
                remedy(nearest(unit, declared.iter().copied()), &otherwise, declared)
            }
        };
        diagnostics.report(rule.written.span_of(Field::Unit), format_args!("no unit `{unit}` is declared; {remedy}"));
    }
}

/// Reports a unit that no rule counts. A rule that could not be read, or that names an unknown unit, may be the one.
fn check_counted(model: &Model, diagnostics: &mut Diagnostics) {
    let is_declared = |name: &str| model.units.iter().any(|unit| unit.name() == Some(name));
    let is_known = |rule: &RuleModel| rule.written.complete && rule.rule.unit().is_none_or(is_declared);
    if !model.complete || !model.rules.iter().all(is_known) {
        return;
    }
    for name in model.units.iter().filter_map(|unit| unit.name.as_ref()) {
        if model.rules.iter().all(|rule| rule.rule.unit() != Some(&name.value)) {
            let message = format!(
                "no rule counts `{0}`; add one, like `rule(count = 20000, per = \"60s\", unit = {0:?})`, or remove the unit",
                name.value
            );
            diagnostics.report(name.span, message);
        }
    }
}
