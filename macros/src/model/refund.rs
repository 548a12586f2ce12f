//! The subject on which a call is refunded.

use crate::attr::Arguments;
use crate::template::{SpannedTemplate, TextPurpose};

/// A subject under which something is counted that can be given back.
#[derive(Clone, Copy)]
pub(crate) struct CountingSubject<'a> {
    /// `None` for the main subject.
    pub(crate) label: Option<&'a str>,
    /// `None` if all calls are one subject.
    pub(crate) key: Option<&'a SpannedTemplate>,
}

impl CountingSubject<'_> {
    /// Returns whether its key is written so.
    pub(crate) fn has_key(&self, text: &str) -> bool {
        self.key.is_some_and(|key| key.text == text)
    }
}

/// Takes `refund_key`, and reports one without a `refund_if`.
pub(super) fn take_key(arguments: &mut Arguments<'_>, has_refund: bool) -> Option<SpannedTemplate> {
    let key = arguments.template("refund_key", r#"refund_key = "{user}""#, TextPurpose::Key)?;
    if !has_refund {
        let message = "`refund_key` is the subject on which `refund_if` refunds a call; add one, like `refund_if = \
                       Result::is_err`, or remove it";
        arguments.diagnostics.report(key.span, message);
    }
    Some(key)
}
