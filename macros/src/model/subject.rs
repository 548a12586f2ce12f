//! The model of a subject beside the main one.

use syn::{Expr, ExprLit, Lit};

use crate::attr::{Argument, Arguments};
use crate::diagnostic::{SpanRange, Spanned};
use crate::template::{SpannedTemplate, TextPurpose};

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
            let message = r#"`subject` needs a label and a key, like `subject("network", "{ip:subnet}")`"#;
            arguments.diagnostics.report(span, message);
            return None;
        };
        let key = SpannedTemplate::parse(key.into(), TextPurpose::Key, arguments.diagnostics);
        Some(Self { label: label.into(), key, span })
    }
}
