//! The options of `prevent_duplicate`.

use syn::{Expr, ExprLit, Lit, LitStr};

use crate::attr::arguments::Arguments;
use crate::attr::value::MESSAGE;
use crate::diagnostic::{Mistakes, Place};

/// `prevent_duplicate`, alone or with arguments.
pub(crate) struct DuplicateOptions {
    pub(crate) place: Place,
    pub(crate) per: Option<LitStr>,
    pub(crate) key: Option<LitStr>,
    pub(crate) message: Option<LitStr>,
    /// Whether all its arguments are known and could be read.
    pub(crate) complete: bool,
}

impl DuplicateOptions {
    pub(super) fn take(arguments: &mut Arguments, mistakes: &mut Mistakes) -> Option<Self> {
        let argument = arguments.take("prevent_duplicate", mistakes)?;
        let place = argument.place();
        let example = duplicate_example(argument.single());
        let list = mistakes.keep(argument.flag_or_list(&example));
        let read = list.is_some();
        let mut list = Arguments::from(list.unwrap_or_default());
        let per = list.text("per", r#"per = "5s""#, mistakes);
        let key = list.template("key", r#"key = "{order.id}""#, mistakes);
        let message = list.template("message", MESSAGE, mistakes);
        Some(Self { place, per, key, message, complete: list.finish(mistakes) && read })
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
