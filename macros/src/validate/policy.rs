//! Checks of rules and bans, and of the subjects that they count.

use std::time::Duration;

use tallygate_rules::{
    Costs, CountedSubject, RELEASED_LABEL, Role, Rule, RuleError, nearest, remedy, validate_ban, validate_by_subject,
    validate_deadline, validate_longest_pause, validate_prefetch, validate_warn_at,
};

use crate::attr::{Amount, number};
use crate::diagnostic::{Diagnostics, SpanRange};
use crate::model::{Model, RuleModel};

/// Reports every mistake in the rules. A rule with an unreadable argument is only checked alone.
pub(super) fn check_rules(model: &Model, diagnostics: &mut Diagnostics) {
    let (complete, incomplete): (Vec<_>, Vec<_>) = model.rules.iter().partition(|rule| rule.written.complete);
    if !complete.is_empty() || (incomplete.is_empty() && model.complete) {
        check_together(model, &complete, diagnostics);
    }
    for rule in incomplete {
        check_together(model, &[rule], diagnostics);
    }
}

fn check_together(model: &Model, models: &[&RuleModel], diagnostics: &mut Diagnostics) {
    let rules: Vec<(_, Rule)> = models.iter().map(|rule| (subject(model, rule), rule.rule.clone())).collect();
    for mistake in validate_by_subject(&rules, costs(model)).err().into_iter().flatten() {
        diagnostics.report(span_of(&mistake, models), &mistake);
    }
}

fn subject<'a>(model: &'a Model, rule: &'a RuleModel) -> CountedSubject<'a> {
    let label = model.label(rule);
    // A subject that can be refunded alone does not bound the rules of other subjects.
    let is_refunded = model.refunded_subject().is_some_and(|refunded| refunded.label == label);
    if rule.release_if.is_some() || is_refunded {
        return CountedSubject::labelled(label);
    }
    CountedSubject::with_key(label, model.key_of(rule).map_or("", |key| &key.text))
}

/// Without a `cost`, every call costs 1.
fn costs(model: &Model) -> Costs {
    match &model.cost {
        _ if model.refund_if.is_some() || model.settle.is_some() => Costs::Recounted,
        None => Costs::Always(1),
        Some(Amount::Literal(cost)) => Costs::Always(number(cost)),
        Some(Amount::Expression(_)) => Costs::Any,
    }
}

fn span_of(mistake: &RuleError, models: &[&RuleModel]) -> SpanRange {
    let Some(rule) = mistake.position().and_then(|index| models.get(index)) else {
        return SpanRange::call_site();
    };
    rule.written.span_of(mistake.field())
}

/// Reports arguments of a policy beside `policy`, which is built elsewhere.
pub(super) fn check_beside_policy(model: &Model, diagnostics: &mut Diagnostics) {
    let named = model.name.iter().map(|name| ("name", name.span));
    let rules = model.rules.iter().map(|rule| match rule.rule.role() {
        Role::Duplicate => ("prevent_duplicate", rule.written.span),
        Role::Concurrency => ("concurrency", rule.written.span),
        _ => ("rule", rule.written.span),
    });
    let ban = model.ban.iter().map(|ban| ("ban", ban.written.span));
    let on_outage = model.on_outage.iter().map(|on_outage| ("on_outage", on_outage.span));
    let deadline = model.deadline.iter().map(|deadline| ("deadline", deadline.span));
    let warn_at = model.warn_at.iter().map(|share| ("warn_at", share.span));
    let prefetch = model.prefetch.iter().map(|ahead| ("prefetch", ahead.span));
    let longest_pause = model.longest_pause.iter().map(|longest| ("longest_pause", longest.span));
    let pause_key = model.pause_key.iter().map(|key| ("pause_key", key.span));
    let settings = on_outage.chain(deadline).chain(warn_at).chain(prefetch).chain(longest_pause).chain(pause_key);
    for (argument, span) in named.chain(rules).chain(ban).chain(settings) {
        let message = format!("`{argument}` cannot stand beside `policy`; add it to that policy, or remove it");
        diagnostics.report(span, message);
    }
}

pub(super) fn check_deadline(model: &Model, diagnostics: &mut Diagnostics) {
    let Some(deadline) = &model.deadline else { return };
    if let Err(mistake) = validate_deadline(deadline.value) {
        diagnostics.report(deadline.span, mistake);
    }
}

/// Reports a `pause` or a `longest_pause` of a subject that cannot be paused.
pub(super) fn check_pause(model: &Model, diagnostics: &mut Diagnostics) {
    let span = model.longest_pause.as_ref().map(|longest| longest.span);
    let Some(span) = span.or(model.pause.as_ref().map(SpanRange::of_tokens)) else { return };
    if model.policy.is_some() {
        return;
    }
    let longest = model.longest_pause.as_ref().map_or(Duration::from_secs(1), |longest| longest.value);
    let is_known = model.complete && model.are_rules_complete();
    let known = model.rules.iter().filter(|_| is_known);
    let known = known.map(|rule| (model.label(rule) == model.paused_label(), &rule.rule));
    if let Err(mistake) = validate_longest_pause(longest, known, model.prefetch.is_some()) {
        diagnostics.report(span, mistake);
    }
}

/// Reports a `pause_key` of nothing that can be paused, or that no rule has.
pub(super) fn check_pause_key(model: &Model, diagnostics: &mut Diagnostics) {
    let Some(key) = &model.pause_key else { return };
    if model.policy.is_some() {
        return;
    }
    if model.pause.is_none() && model.longest_pause.is_none() {
        let message = "`pause_key` is the subject that `pause` pauses; add one, like `pause = |answer| \
                       answer.retry_after()`, or remove it";
        diagnostics.report(key.span, message);
        return;
    }
    let is_known = model.complete && model.has_key == model.key.is_some();
    let is_main = model.key.as_ref().is_some_and(|main| main.text == key.text);
    if is_known && model.are_rules_complete() && !is_main && model.paused_label().is_none() {
        let keys: Vec<_> = model.key.iter().chain(model.rules.iter().filter_map(|rule| rule.key.as_ref())).collect();
        let keys: Vec<_> = keys.into_iter().map(|key| key.text.as_str()).collect();
        let remedy = remedy(nearest(&key.text, keys.iter().copied()), "write one of", &keys);
        diagnostics.report(key.span, format!("no rule has the key `{}`; {remedy}", key.text));
    }
}

pub(super) fn check_prefetch(model: &Model, diagnostics: &mut Diagnostics) {
    let Some(ahead) = &model.prefetch else { return };
    // A rule with an unreadable argument may mean something else.
    let known = model.rules.iter().filter(|rule| rule.written.complete);
    let rules: Vec<_> = known.map(|rule| (subject(model, rule), rule.rule.clone())).collect();
    let cost_of = |unit: &str| model.known_cost(unit).unwrap_or(1);
    for mistake in validate_prefetch(ahead.value, &rules, cost_of).err().into_iter().flatten() {
        diagnostics.report(ahead.span, mistake);
    }
}

/// Reports a share that is not between 0 and 1, or that no rule can warn of.
pub(super) fn check_warn_at(model: &Model, diagnostics: &mut Diagnostics) {
    let Some(share) = &model.warn_at else { return };
    // Without all of its arguments, it is not known what a rule admits.
    let known = model.are_rules_complete();
    let rules = model.rules.iter().filter(|_| known).map(|rule| &rule.rule);
    if let Err(mistake) = validate_warn_at(share.value, rules) {
        diagnostics.report(share.span, mistake);
    }
}

pub(super) fn check_key_used(model: &Model, diagnostics: &mut Diagnostics) {
    let own = !model.rules.is_empty() && model.rules.iter().all(|rule| model.own_key(rule).is_some());
    if let Some(key) = model.key.as_ref().filter(|_| own && model.ban.is_none()) {
        let message = "no rule uses this `key`, because each has a `key` of its own; remove this one, or one of theirs";
        diagnostics.report(key.span, message);
    }
}

/// Reports `prevent_duplicate` that compares the calls of all callers, although other rules separate them.
pub(super) fn check_duplicate_keyed(model: &Model, diagnostics: &mut Diagnostics) {
    let duplicate = model.rules.iter().find(|rule| rule.rule.role() == Role::Duplicate && rule.key.is_none());
    if let (Some(duplicate), Some(key), false) = (duplicate, rule_key(model), model.has_key) {
        let message = format!(
            "without a `key`, the calls of all callers are duplicates of each other; write \
             `prevent_duplicate(key = {key:?})`, or give the function a `key`"
        );
        diagnostics.report(duplicate.written.span, message);
    }
}

/// Reports a key that equals the label of released duplicates.
pub(super) fn check_released(model: &Model, diagnostics: &mut Diagnostics) {
    if model.release().is_none() {
        return;
    }
    let others = model.rules.iter().filter(|rule| rule.release_if.is_none());
    for key in others.filter_map(|rule| rule.key.as_ref()).filter(|key| key.text == RELEASED_LABEL) {
        let message = format!("beside `release_if`, `{RELEASED_LABEL}` is no key of a rule; write another text");
        diagnostics.report(key.span, message);
    }
    check_release_helps(model, diagnostics);
}

/// Reports `release_if` without an effect: another rule denies the repeated call for at least as long as its duplicates
/// would be.
fn check_release_helps(model: &Model, diagnostics: &mut Diagnostics) {
    let released = model.rules.iter().find_map(|rule| Some((rule, rule.release_if.as_ref()?)));
    let Some((duplicates, release_if)) = released.filter(|_| model.refund_if.is_none()) else { return };
    let key = |rule: &RuleModel| model.key_of(rule).map(|key| key.text.clone());
    let still_denies = |rule: &&RuleModel| {
        let is_of_all = key(rule).is_none_or(|of_rule| Some(of_rule) == key(duplicates));
        let is_single =
            rule.count.is_none() && rule.written.complete && rule.counts_costs() && rule.rule.greatest_cost() == 1;
        is_single && is_of_all && rule.rule.per() >= duplicates.rule.per()
    };
    if let Some(RuleModel { rule, .. }) = model.rules.iter().find(still_denies) {
        let message = format!(
            "`release_if` releases duplicates alone: `{rule:#}` still counts a call that has failed, so it cannot be \
             repeated at once; write `refund_if` in its place, which gives both back, or raise the `count`"
        );
        diagnostics.report(SpanRange::of_tokens(release_if), message);
    }
}

/// Reports every mistake in the ban, and a ban of all callers where the rules separate them.
pub(super) fn check_ban(model: &Model, diagnostics: &mut Diagnostics) {
    let Some(ban) = &model.ban else { return };
    // Without all of its arguments, the rate of a rule is not known.
    let known = model.are_rules_complete();
    let rules = model.rules.iter().filter(|_| known).map(|rule| &rule.rule);
    for mistake in validate_ban(&ban.ban, rules).err().into_iter().flatten() {
        diagnostics.report(ban.written.span_of(mistake.field()), &mistake);
    }
    if let (Some(key), false) = (rule_key(model), model.has_key) {
        let message = format!(
            "`ban` applies to the `key` of the function, and without one it bans all callers at once; add one, like \
             `key = {key:?}`"
        );
        diagnostics.report(ban.written.span, message);
    }
}

fn rule_key(model: &Model) -> Option<&str> {
    let keys = model.rules.iter().filter_map(|rule| rule.key.as_ref());
    keys.into_iter().find(|key| key.placeholders().next().is_some()).map(|key| key.text.as_str())
}
