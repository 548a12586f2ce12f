//! The checks of subjects that a policy from elsewhere has beside the main one.

use crate::diagnostic::Mistakes;
use crate::model::{Model, SubjectModel};

const EXAMPLE: &str = r#"subject("network", "{ip:subnet}")"#;

pub(super) fn check(model: &Model, mistakes: &mut Mistakes) {
    for (index, subject) in model.subjects.iter().enumerate() {
        if model.policy.is_none() {
            mistakes.report(
                subject.place,
                "`subject` is for the rules of a `policy` that is built elsewhere; give a rule here its own `key`, like \
                 `rule(count = 10, per = \"60s\", key = \"{ip}\")`",
            );
        }
        check_label(subject, mistakes);
        check_key(subject, mistakes);
        check_distinct(subject, &model.subjects[..index], mistakes);
    }
}

/// Reports an empty label, and a key in its place.
fn check_label(subject: &SubjectModel, mistakes: &mut Mistakes) {
    let SubjectModel { label, key, .. } = subject;
    if label.value.is_empty() {
        mistakes.report(
            label.place,
            format_args!("the label must not be empty; write that of the rules, like `{EXAMPLE}`"),
        );
    }
    let is_fixed = key.as_ref().is_some_and(|key| key.placeholders().next().is_none());
    if is_fixed && label.value.contains('{') {
        mistakes.report(label.place, format_args!("the label comes first and the key second, like `{EXAMPLE}`"));
    }
}

fn check_key(subject: &SubjectModel, mistakes: &mut Mistakes) {
    if let Some(key) = subject.key.as_ref().filter(|key| key.parts.is_empty()) {
        mistakes.report(key.place, format_args!("the key must not be empty; write one, like `{EXAMPLE}`"));
    }
}

fn check_distinct(subject: &SubjectModel, before: &[SubjectModel], mistakes: &mut Mistakes) {
    let label = &subject.label;
    if before.iter().any(|other| other.label.value == label.value) {
        mistakes.report(label.place, format_args!("the subject `{}` is given twice; remove one", label.value));
    }
}
