//! The pipeline: from the tokens of the attribute and of its function to the tokens that replace both.

use proc_macro2::TokenStream;
use quote::quote;

use crate::attr::Options;
use crate::diagnostic::Mistakes;
use crate::expand;
use crate::model::Model;
use crate::shape::Function;
use crate::validate;

/// Returns the limited function, or the unchanged function and all mistakes in the attribute.
pub(crate) fn limit(attribute: TokenStream, item: &TokenStream) -> TokenStream {
    try_limit(attribute.clone(), item.clone()).unwrap_or_else(|mistakes| {
        let mistakes = mistakes.into_compile_error();
        let stub = stub(attribute, item.clone());
        quote!(#item #stub #mistakes)
    })
}

/// Returns a stub of the companion, if the name of one and the function can be read.
fn stub(attribute: TokenStream, item: TokenStream) -> Option<TokenStream> {
    let options = Options::parse(attribute, &mut Mistakes::default());
    let function = Function::parse(item).ok()?;
    let check_fn = options.check_fn.filter(|check_fn| *check_fn != function.signature.ident)?;
    Some(expand::expand_stub(&check_fn, options.runtime.as_ref(), &function))
}

pub(crate) fn try_limit(attribute: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let mut mistakes = Mistakes::default();
    let options = Options::parse(attribute, &mut mistakes);
    let model = Model::from_syn(options, &mut mistakes);
    validate::check(&model, &mut mistakes);
    let function = match Function::parse(item) {
        Ok(function) => function,
        Err(mistake) => return Err(mistakes.and(mistake)),
    };
    validate::check_function(&model, &function, &mut mistakes);
    mistakes.finish()?;
    Ok(expand::expand(&model, &function))
}
