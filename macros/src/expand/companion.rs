//! The companion of a function, named by `check_fn`: it takes the function's arguments, and returns the check of the
//! call.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::{Attribute, Path, Signature, Token, parse_quote};

use crate::expand::context::{ExpandedFunction, Expansion, hygienic, quote_hygienic, runtime_path};
use crate::model::Model;
use crate::shape::{Binding, Function};

// Input:  #[rate_limit(key = "{user.id}", …, check_fn = draw_limit)]
//         pub async fn draw<T: Shop>(shop: &T, Json(user): Json<User>) -> Result<Prize, Error> { body }
// Output: pub fn draw_limit<T: Shop>(shop: &T, Json(user): Json<User>) -> Check<'static> {
//             let _ = (&shop, &user);
//             {
//                 enum TallygateHere {}
//                 static TALLYGATE_POLICY: PolicyCell = PolicyCell::beside::<TallygateHere>("draw", "1 per 1m", &[], "{user.id}");
//                 TALLYGATE_POLICY.call(&user.id).check()
//             }
//         }
pub(super) fn companion(name: &Ident, model: &Model, function: &Function) -> TokenStream {
    let expansion = Expansion { model, function, expanded: ExpandedFunction::Companion };
    let items = expansion.items();
    let call = expansion.call();
    let check = expansion.with_limiter(expansion.with_messages(quote_hygienic!(#call.check())));
    let body = quote_hygienic!({ #items #check });
    with_body(name, model.runtime.as_ref(), function, &body)
}

/// Returns a companion that never runs, so that a mistake in the attribute causes no further errors in its callers.
pub(super) fn stub(name: &Ident, runtime: Option<&Path>, function: &Function) -> TokenStream {
    with_body(name, runtime, function, &quote_hygienic!(::core::unreachable!()))
}

/// An error about the whole companion is reported at its name.
fn with_body(name: &Ident, runtime: Option<&Path>, function: &Function, body: &TokenStream) -> TokenStream {
    let place = hygienic(name.span());
    let documentation = documentation(function);
    let attributes = function.attributes.iter().filter_map(kept);
    let visibility = &function.visibility;
    let runtime = runtime_path(runtime);
    let signature = Signature {
        asyncness: None,
        fn_token: Token![fn](place),
        ident: name.clone(),
        output: parse_quote!(-> #runtime::Check<'static>),
        ..function.signature.clone()
    };
    let rebindings = function.rebindings();
    let use_lifetimes = use_lifetimes(&function.signature);
    let use_arguments = use_arguments(&function.innermost_bindings());
    quote_spanned! {place=>
        #[doc = #documentation]
        #(#attributes)*
        #visibility #signature {
            #(#rebindings)*
            #use_lifetimes
            #use_arguments
            #body
        }
    }
}

fn documentation(function: &Function) -> String {
    let name = function.signature.ident.unraw();
    format!(
        "Returns the rate limit check of `{name}` for these arguments, without a call of `{name}`.\n\nAwait its `peek()` to \
         see where the limits stand, and its `reset()`, `ban(..)` or `unban()` to change that. The check itself counts a \
         call when it is awaited."
    )
}

/// Returns an attribute that the companion takes over from its function: levels of lints, and `doc(hidden)`.
fn kept(attribute: &Attribute) -> Option<TokenStream> {
    let path = attribute.path();
    if path.is_ident("expect") {
        // The lint that the function expects may not occur in the companion.
        let lints = &attribute.meta.require_list().ok()?.tokens;
        return Some(quote!(#[allow(#lints)]));
    }
    let is_level = ["allow", "warn", "deny", "forbid"].iter().any(|level| path.is_ident(level));
    let is_hidden = path.is_ident("doc") && attribute.parse_args::<Ident>().is_ok_and(|hidden| hidden == "hidden");
    (is_level || is_hidden).then(|| quote!(#attribute))
}

/// Uses every lifetime: one may only connect an argument with the function's output, which the companion does not have.
fn use_lifetimes(signature: &Signature) -> Option<TokenStream> {
    let references = signature.generics.lifetimes().map(|parameter| {
        let lifetime = &parameter.lifetime;
        quote_hygienic!(&#lifetime ())
    });
    let references: Vec<_> = references.collect();
    (!references.is_empty()).then(|| quote_hygienic!(let _ = ::core::marker::PhantomData::<(#(#references,)*)>;))
}

/// Uses every argument, because the limits may depend on some of them only.
fn use_arguments(bindings: &[Binding]) -> Option<TokenStream> {
    let uses = bindings.iter().filter(|binding| !binding.name.to_string().starts_with('_')).map(|binding| {
        let Binding { name, is_mutable } = binding;
        if *is_mutable { quote_hygienic!(&mut #name) } else { quote_hygienic!(&#name) }
    });
    let uses: Vec<_> = uses.collect();
    (!uses.is_empty()).then(|| quote_hygienic!(let _ = (#(#uses,)*);))
}
