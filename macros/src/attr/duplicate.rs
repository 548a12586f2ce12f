//! The options of `prevent_duplicate`.

use syn::{Expr, ExprLit, Lit, LitStr};

use crate::attr::arguments::Arguments;
use crate::attr::rule::CALL_ARGUMENTS;
use crate::attr::value::{MESSAGE, function};
use crate::diagnostic::{Diagnostics, SpanRange};

/// Arguments of `prevent_duplicate` only.
pub(super) const DUPLICATE_ARGUMENTS: [&str; 1] = ["release_if"];

/// `prevent_duplicate`, alone or with arguments.
pub(crate) struct DuplicateOptions {
    pub(crate) span: SpanRange,
    pub(crate) per: Option<LitStr>,
    pub(crate) key: Option<LitStr>,
    pub(crate) message: Option<LitStr>,
    pub(crate) release_if: Option<Expr>,
    /// Whether all its arguments are known and could be read.
    pub(crate) complete: bool,
}

impl DuplicateOptions {
    pub(super) fn take(arguments: &mut Arguments, diagnostics: &mut Diagnostics) -> Option<Self> {
        let argument = arguments.take("prevent_duplicate", diagnostics)?;
        let span = argument.span();
        let example = duplicate_example(argument.single());
        let list = diagnostics.ok_or_report(argument.flag_or_list(&example));
        let read = list.is_some();
        let mut list = Arguments::from(list.unwrap_or_default());
        list.refuse(&CALL_ARGUMENTS, "applies to the whole call; write it outside of `prevent_duplicate`", diagnostics);
        let per = list.text("per", r#"per = "5s""#, diagnostics);
        let key = list.template("key", r#"key = "{order.id}""#, diagnostics);
        let message = list.template("message", MESSAGE, diagnostics);
        let release_if = function("release_if", "release_if = Result::is_err", &mut list, diagnostics);
        Some(Self { span, per, key, message, release_if, complete: list.finish(diagnostics) && read })
    }
}

/// Returns `prevent_duplicate` with the argument that its value probably is.
fn duplicate_example(value: Option<&Expr>) -> String {
    match value {
        Some(Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) => {
            let text = text.value();
            let argument = if text.contains('{') { "key" } else { "per" };
            format!("prevent_duplicate({argument} = {text:?})")
        }
        _ => r#"prevent_duplicate(per = "5s")"#.to_owned(),
    }
}
