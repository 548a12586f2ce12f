//! The expansion: from the model to tokens.

mod call;
mod code;
mod companion;
mod context;
mod decision;
mod document;
mod epilogue;
mod function;
mod in_context;
mod late_keys;
mod message;
mod openapi;
mod policy;
mod preparation;
mod subject;

use proc_macro2::{Ident, TokenStream};
use syn::Path;

use crate::expand::context::{Expanded, Expansion};
use crate::model::Model;
use crate::shape::Function;

/// Returns the function with its check, its companion, and the type with its responses.
pub(crate) fn expand(model: &Model, function: &Function) -> TokenStream {
    let limited = function::limited(model, function);
    let companion = model.check_fn.as_ref().map(|name| companion::companion(name, model, function));
    let expansion = Expansion { model, function, expanded: Expanded::Limited };
    let openapi = model.openapi.as_ref().map(|name| expansion.openapi(name));
    quote::quote!(#limited #companion #openapi)
}

/// Returns the companion of a function whose attribute is mistaken, so that its callers have no errors besides.
pub(crate) fn expand_stub(check_fn: &Ident, runtime: Option<&Path>, function: &Function) -> TokenStream {
    companion::stub(check_fn, runtime, function)
}
