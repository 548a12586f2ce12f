//! The checks of subjects that a policy from elsewhere has beside the main one.

use tallygate_rules::is_blank;

use crate::diagnostic::Diagnostics;
use crate::model::{Model, SubjectModel};

const EXAMPLE: &str = r#"subject("network", "{ip:subnet}")"#;

pub(super) fn check(model: &Model, diagnostics: &mut Diagnostics) {
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
        diagnostics
            .report(label.span, format_args!("the label must not be empty; write that of the rules, like `{EXAMPLE}`"));
    }
    let is_fixed = key.as_ref().is_some_and(|key| key.placeholders().next().is_none());
    if is_fixed && label.value.contains('{') {
        diagnostics.report(label.span, format_args!("the label comes first and the key second, like `{EXAMPLE}`"));
    }
}

fn check_key(subject: &SubjectModel, diagnostics: &mut Diagnostics) {
    if let Some(key) = subject.key.as_ref().filter(|key| is_blank(&key.text)) {
        diagnostics.report(key.span, format_args!("the key must not be empty; write one, like `{EXAMPLE}`"));
    }
}

fn check_distinct(subject: &SubjectModel, before: &[SubjectModel], diagnostics: &mut Diagnostics) {
    let label = &subject.label;
    if before.iter().any(|other| other.label.value == label.value) {
        diagnostics.report(label.span, format_args!("the subject `{}` is given twice; remove one", label.value));
    }
}
