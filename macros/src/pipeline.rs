//! The pipeline: from the tokens of the attribute and of its function to the tokens that replace both.

use proc_macro2::TokenStream;
use quote::quote;

use crate::diagnostic::Diagnostics;
use crate::expand;
use crate::model::Model;
use crate::shape::Function;
use crate::validate;

/// Returns the limited function, or the unchanged function and all mistakes in the attribute.
pub(crate) fn limit(attribute: TokenStream, item: &TokenStream) -> TokenStream {
    try_limit(&attribute, item).unwrap_or_else(|diagnostics| {
        let diagnostics = diagnostics.into_compile_error();
        let stub = stub(attribute, item);
        quote!(#item #stub #diagnostics)
    })
}

/// Returns a stub of the companion, if its name and the function can be read.
fn stub(attribute: TokenStream, item: &TokenStream) -> Option<TokenStream> {
    let model = Model::read(attribute, &mut Diagnostics::default());
    let function = Function::parse(item).ok()?;
    let check_fn = model.check_fn.filter(|check_fn| *check_fn != function.signature.ident)?;
    Some(expand::expand_stub(&check_fn, model.runtime.as_ref(), &function))
}

pub(crate) fn try_limit(attribute: &TokenStream, item: &TokenStream) -> syn::Result<TokenStream> {
    let mut diagnostics = Diagnostics::default();
    let mut model = Model::read(attribute.clone(), &mut diagnostics);
    validate::check(&model, &mut diagnostics);
    let function = match Function::parse(item) {
        Ok(function) => function,
        Err(mistake) => return Err(diagnostics.into_error_with(mistake)),
    };
    if let Some(variants) = function.variants() {
        return Ok(expand::expand_variants(attribute, model.runtime.as_ref(), variants));
    }
    validate::check_all_arguments(&model, &function, &mut diagnostics);
    model.replace_all_placeholder(&function.argument_names());
    validate::check_function(&model, &function, &mut diagnostics);
    diagnostics.finish()?;
    Ok(expand::expand(&model, &function))
}
