//! The options of a subject beside the main one.

use syn::{Expr, ExprLit, Lit, LitStr};

use crate::attr::argument::Argument;
use crate::attr::arguments::Arguments;
use crate::diagnostic::{Diagnostics, SpanRange, error};

/// `subject("label", "key")`.
pub(crate) struct SubjectOptions {
    pub(crate) span: SpanRange,
    pub(crate) label: LitStr,
    pub(crate) key: LitStr,
}

impl SubjectOptions {
    pub(super) fn take_all(arguments: &mut Arguments, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let subjects = arguments.take_all("subject").into_iter();
        subjects.filter_map(|subject| diagnostics.ok_or_report(Self::read(subject))).collect()
    }

    fn read(subject: Argument) -> syn::Result<Self> {
        let span = subject.span();
        match &subject.positional()[..] {
            [Expr::Lit(ExprLit { lit: Lit::Str(label), .. }), Expr::Lit(ExprLit { lit: Lit::Str(key), .. })] => {
                Ok(Self { span, label: label.clone(), key: key.clone() })
            }
            _ => Err(error(span, r#"`subject` needs a label and a key, like `subject("network", "{ip:subnet}")`"#)),
        }
    }
}
