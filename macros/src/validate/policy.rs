//! Checks of rules and bans, and of the subjects that they count.

use tallygate_rules::{Costs, Role, Rule, RuleError, validate_ban, validate_by_subject};

use crate::attr::Amount;
use crate::diagnostic::{Mistakes, Place};
use crate::model::Model;
use crate::rule::{RuleModel, number};

/// Reports every mistake in the rules. A rule of which a part could not be read is checked alone.
pub(super) fn check_rules(model: &Model, mistakes: &mut Mistakes) {
    let (complete, incomplete): (Vec<_>, Vec<_>) = model.rules.iter().partition(|rule| rule.complete);
    if !complete.is_empty() || (incomplete.is_empty() && model.complete) {
        check_together(model, &complete, mistakes);
    }
    for rule in incomplete {
        check_together(model, &[rule], mistakes);
    }
}

fn check_together(model: &Model, models: &[&RuleModel], mistakes: &mut Mistakes) {
    let rules: Vec<(_, Rule)> = models.iter().map(|rule| (model.label(rule), rule.rule.clone())).collect();
    for mistake in validate_by_subject(&rules, costs(model)).err().into_iter().flatten() {
        mistakes.report(place_of(&mistake, models), &mistake);
    }
}

/// Returns the costs of the calls. Without a `cost`, every call costs 1.
fn costs(model: &Model) -> Costs {
    match &model.cost {
        None => Costs::Always(1),
        Some(Amount::Literal(cost)) => Costs::Always(number(cost)),
        Some(Amount::Expression(_)) => Costs::Any,
    }
}

fn place_of(mistake: &RuleError, models: &[&RuleModel]) -> Place {
    let Some(rule) = mistake.position().and_then(|index| models.get(index)) else {
        return Place::attribute();
    };
    rule.place_of(mistake.field())
}

/// Reports parts of a policy beside a policy that is built elsewhere.
pub(super) fn check_beside_policy(model: &Model, mistakes: &mut Mistakes) {
    let named = model.name.iter().map(|name| ("name", name.place));
    let rules = model.rules.iter().map(|rule| match rule.rule.role() {
        Role::Duplicate => ("prevent_duplicate", rule.place),
        _ => ("rule", rule.place),
    });
    let ban = model.ban.iter().map(|ban| ("ban", ban.place));
    for (argument, place) in named.chain(rules).chain(ban) {
        let message = format!("`{argument}` cannot stand beside `policy`; add it to that policy, or remove it");
        mistakes.report(place, message);
    }
}

/// Reports a key of the function that no rule uses.
pub(super) fn check_key_used(model: &Model, mistakes: &mut Mistakes) {
    let own = !model.rules.is_empty() && model.rules.iter().all(|rule| model.label(rule).is_some());
    if let Some(key) = model.key.as_ref().filter(|_| own && model.ban.is_none()) {
        let message = "no rule uses this `key`, because each has a `key` of its own; remove this one, or one of theirs";
        mistakes.report(key.place, message);
    }
}

/// Reports `prevent_duplicate` that compares the calls of all callers, where other rules separate them.
pub(super) fn check_duplicate_keyed(model: &Model, mistakes: &mut Mistakes) {
    let duplicate = model.rules.iter().find(|rule| rule.rule.role() == Role::Duplicate && rule.key.is_none());
    if let (Some(duplicate), Some(key), false) = (duplicate, rule_key(model), model.keyed) {
        let message = format!(
            "without a `key`, the calls of all callers are duplicates of each other; write \
             `prevent_duplicate(key = {key:?})`, or give the function a `key`"
        );
        mistakes.report(duplicate.place, message);
    }
}

/// Reports every mistake in the ban, and a ban of all callers where the rules separate them.
pub(super) fn check_ban(model: &Model, mistakes: &mut Mistakes) {
    let Some(ban) = &model.ban else { return };
    // The rate of a rule is not known if a part of it could not be read.
    let known = model.rules.iter().all(|rule| rule.complete);
    let rules = model.rules.iter().filter(|_| known).map(|rule| &rule.rule);
    for mistake in validate_ban(&ban.ban, rules).err().into_iter().flatten() {
        mistakes.report(ban.place_of(mistake.field()), &mistake);
    }
    if let (Some(key), false) = (rule_key(model), model.keyed) {
        let message = format!(
            "`ban` applies to the `key` of the function, and without one it bans all callers at once; add one, like \
             `key = {key:?}`"
        );
        mistakes.report(ban.place, message);
    }
}

/// Returns the first key of a rule that separates callers.
fn rule_key(model: &Model) -> Option<&str> {
    let keys = model.rules.iter().filter_map(|rule| rule.key.as_ref());
    keys.into_iter().find(|key| key.placeholders().next().is_some()).map(|key| key.text.as_str())
}
