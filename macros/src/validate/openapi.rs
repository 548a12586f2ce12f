//! The check of `openapi`.

use crate::diagnostic::Diagnostics;
use crate::model::Model;
use crate::shape::Function;

/// Reports `openapi` where no type can be generated, or where the runtime lacks what it needs.
pub(super) fn check(model: &Model, function: &Function, diagnostics: &mut Diagnostics) {
    let Some(name) = &model.openapi else { return };
    if function.signature.receiver().is_some() {
        let message = "`openapi` works on free functions; put the attribute on the handler that calls this method";
        diagnostics.report(name.span(), message);
    } else if !cfg!(feature = "openapi") {
        let message =
            "`openapi` needs the feature `utoipa` of tallygate; add it in Cargo.toml, like `features = [\"utoipa\"]`";
        diagnostics.report(name.span(), message);
    }
}
