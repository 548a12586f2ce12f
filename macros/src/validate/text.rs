//! Checks of names, keys and messages.

use tallygate_rules::{EMPTY_KEY, NAME_WITH_BRACES, Role, is_blank, is_separator, must_be_separated};

use crate::diagnostic::Diagnostics;
use crate::model::Model;
use crate::template::{Part, RejectionField, Template, TemplateValue};

/// Reports a blank name of the policy, and every name with a placeholder.
pub(super) fn check_names(model: &Model, diagnostics: &mut Diagnostics) {
    if let Some(name) = model.name.as_ref().filter(|name| is_blank(&name.value)) {
        diagnostics.report(name.span, "`name` must not be empty; without `name`, the path of the function is used");
    }
    for (_, span) in model.names().filter(|(name, _)| name.contains(['{', '}'])) {
        diagnostics.report(span, NAME_WITH_BRACES);
    }
}

/// Reports every blank key.
pub(super) fn check_keys(model: &Model, diagnostics: &mut Diagnostics) {
    if let Some(key) = model.key.as_ref().filter(|key| is_blank(&key.text)) {
        diagnostics
            .report(key.span, "`key` must not be empty; without `key`, all calls of the function are counted together");
    }
    for key in model.rules.iter().filter_map(|rule| rule.key.as_ref()).filter(|key| is_blank(&key.text)) {
        diagnostics.report(key.span, EMPTY_KEY);
    }
}

/// Reports every blank message.
pub(super) fn check_messages(model: &Model, diagnostics: &mut Diagnostics) {
    for (_, blank) in model.messages().filter(|(_, message)| is_blank(&message.text)) {
        diagnostics.report(blank.span, "`message` must not be empty; without `message`, the default text is used");
    }
}

/// Reports a window in a message of a limit that has none.
pub(super) fn check_windows_shown(model: &Model, diagnostics: &mut Diagnostics) {
    let without = model.rules.iter().filter(|rule| rule.rule.role() == Role::Concurrency);
    let shows =
        |message: &&Template| message.parts.iter().any(|part| matches!(part, Part::Rejection(RejectionField::Per)));
    for message in without.filter_map(|rule| rule.message.as_ref()).filter(shows) {
        diagnostics.report(message.span, "`{@per}` is the window of a rule, and `concurrency` has none; remove it");
    }
}

/// Reports two placeholders with nothing between them that separates their values.
pub(super) fn check_placeholders_separated(template: &Template, diagnostics: &mut Diagnostics) {
    let mut previous: Option<&TemplateValue> = None;
    for part in &template.parts {
        match part {
            Part::Text(text) if is_separator(text) => previous = None,
            Part::Text(_) | Part::Rejection(_) => {}
            Part::Value(value) => {
                if let Some(previous) = previous.replace(value) {
                    diagnostics.report(template.span, must_be_separated(&previous.text, &value.text));
                }
            }
        }
    }
}
