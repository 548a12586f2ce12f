//! Checks of `refund_if` and of its `refund_key`.

use tallygate_rules::{Role, nearest, remedy};

use crate::diagnostic::{Diagnostics, SpanRange};
use crate::model::{CountingSubject, Model};
use crate::template::SpannedTemplate;

/// Reports `refund_if` beside `concurrency` alone, whose count ends with each call.
pub(super) fn check_counted(model: &Model, diagnostics: &mut Diagnostics) {
    let Some(refund_if) = &model.refund_if else { return };
    let only_concurrency = model.rules.iter().all(|rule| rule.rule.role() == Role::Concurrency);
    if only_concurrency && !model.rules.is_empty() {
        let message = "`refund_if` needs a rule that counts calls, like `rule(count = 10, per = \"60s\")`: what \
                       `concurrency` counts ends with each call; remove it, or add a rule";
        diagnostics.report(SpanRange::of_tokens(refund_if), message);
    }
}

/// Reports a `refund_key` that the call does not have, that is its only subject, or that another argument excludes.
pub(super) fn check_subject(model: &Model, diagnostics: &mut Diagnostics) {
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
    model.complete && has_main && has_others && model.rules.iter().all(|rule| rule.written.complete)
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
