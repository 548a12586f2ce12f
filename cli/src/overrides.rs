//! The place of an override, in words.

use std::fmt::Display;

/// Returns the label and the subject of an override: ` on network for sms:13800000000`.
pub(crate) fn place(label: Option<&str>, subject: Option<impl Display>) -> String {
    let label = label.map(|label| format!(" on {label}")).unwrap_or_default();
    let subject = subject.map(|subject| format!(" for {subject}")).unwrap_or_default();
    format!("{label}{subject}")
}
