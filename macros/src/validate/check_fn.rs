//! The checks of the companion function's name.

use crate::diagnostic::Diagnostics;
use crate::model::Model;
use crate::shape::Function;

pub(super) fn check(model: &Model, function: &Function, diagnostics: &mut Diagnostics) {
    let name = &function.signature.ident;
    if let Some(check_fn) = model.check_fn.as_ref().filter(|check_fn| *check_fn == name) {
        let message =
            format!("`check_fn` names a second function; choose another name, like `check_fn = {name}_limit`");
        diagnostics.report(check_fn.span(), message);
    }
}
