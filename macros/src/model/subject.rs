//! The models of subjects: those beside the main one, and the one on which a call is refunded.

use syn::{Expr, ExprLit, Lit};
use tallygate_rules::TemplateUse;

use crate::attr::{Argument, Arguments, SUBJECT_EXAMPLE};
use crate::diagnostic::{SpanRange, Spanned};
use crate::template::SpannedTemplate;

/// `subject("label", "key")`.
pub(crate) struct SubjectModel {
    pub(crate) label: Spanned<String>,
    pub(crate) key: Option<SpannedTemplate>,
    pub(crate) span: SpanRange,
}

impl SubjectModel {
    pub(super) fn take_all(arguments: &mut Arguments<'_>) -> Vec<Self> {
        let subjects = arguments.take_all("subject").into_iter();
        subjects.filter_map(|subject| Self::read(subject, arguments)).collect()
    }

    fn read(subject: Argument, arguments: &mut Arguments<'_>) -> Option<Self> {
        let span = subject.span();
        let [Expr::Lit(ExprLit { lit: Lit::Str(label), .. }), Expr::Lit(ExprLit { lit: Lit::Str(key), .. })] =
            &subject.positional()[..]
        else {
            let message = format!("`subject` needs a label and a key, like `{SUBJECT_EXAMPLE}`");
            arguments.diagnostics.report(span, message);
            return None;
        };
        let key = SpannedTemplate::parse(key.into(), TemplateUse::Key, arguments.diagnostics);
        Some(Self { label: label.into(), key, span })
    }
}

/// A subject that counts something that can be refunded.
#[derive(Clone, Copy)]
pub(crate) struct CountingSubject<'a> {
    /// `None` for the main subject.
    pub(crate) label: Option<&'a str>,
    /// `None` if all calls are one subject.
    pub(crate) key: Option<&'a SpannedTemplate>,
}

impl CountingSubject<'_> {
    pub(crate) fn has_key(&self, text: &str) -> bool {
        self.key.is_some_and(|key| key.text == text)
    }
}

/// Takes `refund_key`, and reports one without a `refund_if`.
pub(super) fn take_refund_key(arguments: &mut Arguments<'_>, has_refund: bool) -> Option<SpannedTemplate> {
    let key = arguments.template("refund_key", r#"refund_key = "{user}""#, TemplateUse::Key)?;
    if !has_refund {
        let message = "`refund_key` is the subject on which `refund_if` refunds a call; add one, like `refund_if = \
                       Result::is_err`, or remove it";
        arguments.diagnostics.report(key.span, message);
    }
    Some(key)
}
