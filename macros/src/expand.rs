//! The expansion: from the model to tokens.

mod code;
mod companion;
mod context;
mod decision;
mod document;
mod function;
mod message;
mod options;
mod policy;
mod preparation;
mod refund;
mod subject;

use proc_macro2::{Ident, TokenStream};
use syn::Path;

use crate::model::Model;
use crate::shape::Function;

/// Returns the function with its check, and its companion.
pub(crate) fn expand(model: &Model, function: &Function) -> TokenStream {
    let limited = function::limited(model, function);
    let companion = model.check_fn.as_ref().map(|name| companion::companion(name, model, function));
    quote::quote!(#limited #companion)
}

/// Returns the companion of a function whose attribute is mistaken, so that its callers have no errors besides.
pub(crate) fn expand_stub(check_fn: &Ident, runtime: Option<&Path>, function: &Function) -> TokenStream {
    companion::stub(check_fn, runtime, function)
}
