//! Checks of names, keys and messages, and of the subjects that keys show.

use tallygate_rules::{
    EMPTY_KEY, EMPTY_MESSAGE, NAME_WITH_BRACES, NO_WINDOW, RejectionField, Role, is_blank, is_separator,
    must_be_separated,
};

use crate::attr::SUBJECT_EXAMPLE;
use crate::diagnostic::Diagnostics;
use crate::model::{Model, SubjectModel};
use crate::template::{SpannedTemplate, TemplateValue, TextPart};

/// Reports a blank name of the policy, and every name with a placeholder.
pub(super) fn check_names(model: &Model, diagnostics: &mut Diagnostics) {
    if let Some(name) = model.name.as_ref().filter(|name| is_blank(&name.value)) {
        diagnostics.report(name.span, "`name` must not be empty; without `name`, the path of the function is used");
    }
    for (_, span) in model.names().filter(|(name, _)| name.contains(['{', '}'])) {
        diagnostics.report(span, NAME_WITH_BRACES);
    }
}

pub(super) fn check_keys(model: &Model, diagnostics: &mut Diagnostics) {
    if let Some(key) = model.key.as_ref().filter(|key| is_blank(&key.text)) {
        diagnostics
            .report(key.span, "`key` must not be empty; without `key`, all calls of the function are counted together");
    }
    for key in model.rules.iter().filter_map(|rule| rule.key.as_ref()).filter(|key| is_blank(&key.text)) {
        diagnostics.report(key.span, EMPTY_KEY);
    }
}

pub(super) fn check_messages(model: &Model, diagnostics: &mut Diagnostics) {
    for (_, blank) in model.messages().filter(|(_, message)| is_blank(&message.text)) {
        diagnostics.report(blank.span, EMPTY_MESSAGE);
    }
}

/// Reports `{@per}` in a message of a limit that has no window.
pub(super) fn check_windows_shown(model: &Model, diagnostics: &mut Diagnostics) {
    let without = model.rules.iter().filter(|rule| rule.rule.role() == Role::Concurrency);
    let shows = |message: &&SpannedTemplate| {
        message.parts.iter().any(|part| matches!(part, TextPart::Rejection(RejectionField::Per)))
    };
    for message in without.filter_map(|rule| rule.message.as_ref()).filter(shows) {
        diagnostics.report(message.span, NO_WINDOW);
    }
}

/// Reports two placeholders with nothing between them that separates their values.
pub(super) fn check_placeholders_separated(template: &SpannedTemplate, diagnostics: &mut Diagnostics) {
    let mut previous: Option<&TemplateValue> = None;
    for part in &template.parts {
        match part {
            TextPart::Text(text) if is_separator(text) => previous = None,
            TextPart::Text(_) | TextPart::Rejection(_) => {}
            TextPart::Value(value) => {
                if let Some(previous) = previous.replace(value) {
                    diagnostics.report(template.span, must_be_separated(&previous.text, &value.text));
                }
            }
        }
    }
}

/// Reports every mistake in the other subjects of `policy`.
pub(super) fn check_subjects(model: &Model, diagnostics: &mut Diagnostics) {
    for (index, subject) in model.subjects.iter().enumerate() {
        if model.policy.is_none() {
            diagnostics.report(
                subject.span,
                "`subject` is for the rules of a `policy` that is built elsewhere; give a rule here its own `key`, like \
                 `rule(count = 10, per = \"60s\", key = \"{ip}\")`",
            );
        }
        check_label(subject, diagnostics);
        check_key(subject, diagnostics);
        check_distinct(subject, &model.subjects[..index], diagnostics);
    }
}

/// Reports an empty label, and a key in its place.
fn check_label(subject: &SubjectModel, diagnostics: &mut Diagnostics) {
    let SubjectModel { label, key, .. } = subject;
    if is_blank(&label.value) {
        diagnostics.report(
            label.span,
            format_args!("the label must not be empty; write that of the rules, like `{SUBJECT_EXAMPLE}`"),
        );
    }
    let is_fixed = key.as_ref().is_some_and(|key| key.placeholders().next().is_none());
    if is_fixed && label.value.contains('{') {
        diagnostics
            .report(label.span, format_args!("the label comes first and the key second, like `{SUBJECT_EXAMPLE}`"));
    }
}

fn check_key(subject: &SubjectModel, diagnostics: &mut Diagnostics) {
    if let Some(key) = subject.key.as_ref().filter(|key| is_blank(&key.text)) {
        diagnostics.report(key.span, format_args!("the key must not be empty; write one, like `{SUBJECT_EXAMPLE}`"));
    }
}

fn check_distinct(subject: &SubjectModel, before: &[SubjectModel], diagnostics: &mut Diagnostics) {
    let label = &subject.label;
    if before.iter().any(|other| other.label.value == label.value) {
        diagnostics.report(label.span, format_args!("the subject `{}` is given twice; remove one", label.value));
    }
}
