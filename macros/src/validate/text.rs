//! Checks of names, keys and messages.

use tallygate_rules::Field;

use crate::diagnostic::Diagnostics;
use crate::model::Model;
use crate::template::{Part, Placeholder, Template, is_separator};

/// Reports a policy without a name, and every name with a placeholder.
pub(super) fn check_names(model: &Model, diagnostics: &mut Diagnostics) {
    let policy = model.name.iter().map(|name| (name.value.as_str(), name.span));
    let rules = model.rules.iter().filter_map(|rule| Some((rule.rule.name()?, rule.span_of(Field::Name))));
    if let Some((_, span)) = policy.clone().find(|(name, _)| name.is_empty()) {
        diagnostics.report(span, "`name` must not be empty; without `name`, the path of the function is used");
    }
    for (_, span) in policy.chain(rules).filter(|(name, _)| name.contains(['{', '}'])) {
        let message = "`name` is fixed text; remove the braces, and use placeholders in a `key`, like \
                       `key = \"sms:{phone}\"`";
        diagnostics.report(span, message);
    }
}

/// Reports every empty key.
pub(super) fn check_keys(model: &Model, diagnostics: &mut Diagnostics) {
    let is_empty = |key: &&Template| key.parts.is_empty();
    if let Some(key) = model.key.as_ref().filter(is_empty) {
        diagnostics
            .report(key.span, "`key` must not be empty; without `key`, all calls of the function are counted together");
    }
    for key in model.rules.iter().filter_map(|rule| rule.key.as_ref()).filter(is_empty) {
        let message = "`key` must not be empty; to count all calls together, write any text, like `key = \"all\"`";
        diagnostics.report(key.span, message);
    }
}

/// Reports every empty message.
pub(super) fn check_messages(model: &Model, diagnostics: &mut Diagnostics) {
    for (_, empty) in model.messages().filter(|(_, message)| message.parts.is_empty()) {
        diagnostics.report(empty.span, "`message` must not be empty; without `message`, the default text is used");
    }
}

/// Reports two placeholders with nothing between them that separates their values.
pub(super) fn check_placeholders_separated(template: &Template, diagnostics: &mut Diagnostics) {
    let mut previous: Option<&Placeholder> = None;
    for part in &template.parts {
        match part {
            Part::Text(text) if is_separator(text) => previous = None,
            Part::Text(_) | Part::Rejection(_) => {}
            Part::Value(value) => {
                if let Some(previous) = previous.replace(value) {
                    diagnostics.report(template.span, ambiguous(&previous.text, &value.text));
                }
            }
        }
    }
}

fn ambiguous(first: &str, second: &str) -> String {
    format!(
        "different values of `{{{first}}}` and `{{{second}}}` could make the same key; \
         put `:` between them, which no value contains: `{{{first}}}:{{{second}}}`"
    )
}
