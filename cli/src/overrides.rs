//! Overrides, as they are listed.

use std::fmt::Display;

use serde_json::{Value, json};
use tallygate::{Override, Rule, RuleId};

use crate::duration;

/// Returns what an override is for, beside its policy: ` on network for sms:13800000000`.
pub(crate) fn place(label: Option<&str>, subject: Option<impl Display>) -> String {
    let label = label.map(|label| format!(" on {label}")).unwrap_or_default();
    let subject = subject.map(|subject| format!(" for {subject}")).unwrap_or_default();
    format!("{label}{subject}")
}

/// Returns an override for scripts.
pub(crate) fn json(one: &Override) -> Value {
    json!({
        "policy": one.policy(),
        "label": one.label(),
        "subject": one.subject().map(ToString::to_string),
        "rules": one.rules().map(rule).collect::<Vec<_>>(),
        "expires_in_ms": one.expires_in().map(duration::ms),
    })
}

fn rule((replaces, rule): (Option<&RuleId>, &Rule)) -> Value {
    let replaces = replaces.map(|id| match id {
        RuleId::Name(name) => json!(name),
        RuleId::Position(position) => json!(position),
    });
    json!({ "replaces": replaces, "rule": rule.to_string() })
}
