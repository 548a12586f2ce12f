//! The return type of a function.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::spanned::Spanned as _;
use syn::visit::{Visit, visit_assoc_type, visit_path_segment};
use syn::visit_mut::{VisitMut, visit_type_mut};
use syn::{
    AssocType, GenericArgument, PathArguments, PathSegment, ReturnType, Type, TypeParamBound, parse_quote_spanned,
};

/// The traits of responses in axum and in actix-web.
const RESPONSES: [&str; 2] = ["IntoResponse", "Responder"];

pub(super) fn whole(returned: &ReturnType) -> Option<&Type> {
    match returned {
        ReturnType::Type(_, returned) => Some(returned),
        ReturnType::Default => None,
    }
}

/// Returns the output of the returned future, or the whole type if it does not show the output.
pub(super) fn output(returned: &ReturnType) -> Option<&Type> {
    let whole = whole(returned)?;
    Some(output_of(whole).or_else(|| aliased(whole)).unwrap_or(whole))
}

/// Returns the type of the body's result, as it is written in the body.
pub(super) fn result(returned: &ReturnType, is_future: bool) -> TokenStream {
    let Some(whole) = whole(returned) else { return quote!(()) };
    if !is_future {
        return nameable(whole);
    }
    output_of(whole).map_or_else(|| quote!(<#whole as ::core::future::Future>::Output), nameable)
}

/// Returns the `T` of `Output = T` in a future's type.
fn output_of(future: &Type) -> Option<&Type> {
    let mut output = OutputType(None);
    output.visit_type(future);
    output.0
}

/// Returns whether the body's result is `impl IntoResponse` or `impl Responder`.
pub(super) fn is_response(returned: &ReturnType, is_future: bool) -> bool {
    named_result(returned, is_future).is_some_and(is_any_response)
}

/// Returns whether the body's result is a `Result` of `impl IntoResponse` or `impl Responder`.
pub(super) fn is_response_in_result(returned: &ReturnType, is_future: bool) -> bool {
    result_type(returned, is_future, 0).is_some_and(is_any_response)
}

/// Returns the type of the error, if the body's result is a `Result` that shows it.
pub(super) fn error(returned: &ReturnType, is_future: bool) -> Option<&Type> {
    result_type(returned, is_future, 1)
}

/// Returns a type between the brackets of `Result<…>`, if the return type shows that the body's result is one.
fn result_type(returned: &ReturnType, is_future: bool, position: usize) -> Option<&Type> {
    let Type::Path(result) = named_result(returned, is_future)? else { return None };
    let result = result.path.segments.last().filter(|segment| segment.ident == "Result")?;
    let PathArguments::AngleBracketed(arguments) = &result.arguments else { return None };
    match arguments.args.get(position) {
        Some(GenericArgument::Type(named)) => Some(named),
        _ => None,
    }
}

/// Returns the type of the body's result, if the return type shows it.
fn named_result(returned: &ReturnType, is_future: bool) -> Option<&Type> {
    let whole = whole(returned)?;
    if is_future { output_of(whole) } else { Some(whole) }
}

fn is_any_response(result: &Type) -> bool {
    let Type::ImplTrait(opaque) = result else { return false };
    opaque.bounds.iter().any(|bound| match bound {
        TypeParamBound::Trait(bound) => {
            let name = bound.path.segments.last().map(|segment| segment.ident.to_string());
            name.is_some_and(|name| RESPONSES.contains(&name.as_str()))
        }
        _ => false,
    })
}

/// Replaces each `impl Trait` by `_`, which the compiler infers.
fn nameable(result: &Type) -> TokenStream {
    let mut result = result.clone();
    Inferred.visit_type_mut(&mut result);
    result.into_token_stream()
}

struct Inferred;

impl VisitMut for Inferred {
    fn visit_type_mut(&mut self, of: &mut Type) {
        match of {
            Type::ImplTrait(_) => *of = parse_quote_spanned!(of.span()=> _),
            _ => visit_type_mut(self, of),
        }
    }
}

/// Returns whether the type looks like a future: `impl Future<…>`, `Pin<Box<dyn Future<…>>>`, `BoxFuture<…>`.
pub(super) fn is_future(returned: &ReturnType) -> bool {
    let mut futures = Futures(false);
    futures.visit_return_type(returned);
    futures.0
}

/// Finds the `T` of `Output = T`.
struct OutputType<'a>(Option<&'a Type>);

impl<'a> Visit<'a> for OutputType<'a> {
    fn visit_assoc_type(&mut self, associated: &'a AssocType) {
        if associated.ident == "Output" {
            self.0.get_or_insert(&associated.ty);
        }
        visit_assoc_type(self, associated);
    }
}

/// Returns the `T` of `BoxFuture<'_, T>`.
fn aliased(returned: &Type) -> Option<&Type> {
    let Type::Path(path) = returned else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else { return None };
    arguments.args.iter().rev().find_map(|argument| match argument {
        GenericArgument::Type(argument) => Some(argument),
        _ => None,
    })
}

struct Futures(bool);

impl<'a> Visit<'a> for Futures {
    fn visit_path_segment(&mut self, segment: &'a PathSegment) {
        self.0 |= segment.ident.to_string().ends_with("Future");
        visit_path_segment(self, segment);
    }

    // Does not search the output of a future, which may be another future.
    fn visit_assoc_type(&mut self, _: &'a AssocType) {}
}
