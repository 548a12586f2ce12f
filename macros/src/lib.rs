//! The `#[rate_limit]` attribute of Tallygate.

mod argument;
mod attr;
mod diagnostic;
mod expand;
mod model;
mod shape;
mod template;
#[cfg(test)]
mod tests;
mod validate;

use proc_macro2::TokenStream;
use quote::quote;

use crate::attr::Options;
use crate::diagnostic::Mistakes;
use crate::model::Model;
use crate::shape::Function;

/// Limits a function.
#[proc_macro_attribute]
pub fn rate_limit(attribute: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    limit(attribute.into(), item.into()).into()
}

/// Returns the limited function, or the function as it is beside all the mistakes.
fn limit(attribute: TokenStream, item: TokenStream) -> TokenStream {
    try_limit(attribute, item.clone()).unwrap_or_else(|mistakes| {
        let mistakes = mistakes.into_compile_error();
        quote!(#item #mistakes)
    })
}

fn try_limit(attribute: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let mut mistakes = Mistakes::default();
    let function = mistakes.keep(Function::parse(item));
    let options = Options::parse(attribute, &mut mistakes);
    let model = options.map(|options| Model::from_syn(options, &mut mistakes));
    validate::check(model.as_ref(), function.as_ref(), &mut mistakes);
    mistakes.finish()?;
    Ok(model.zip(function).map(|(model, function)| expand::expand(&model, &function)).unwrap_or_default())
}
