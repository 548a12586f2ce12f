//! The responses to rejected calls of a handler, for documents of OpenAPI.

use proc_macro2::{Ident, TokenStream};
use quote::quote_spanned;
use syn::ext::IdentExt as _;
use tallygate_rules::{Role, Rule};

use crate::expand::context::{Expansion, hygienic, quote_hygienic};
use crate::expand::document;

// Input:  #[rate_limit(rule(count = 1, per = "60s"), openapi = SendCodeLimits)]
//         pub async fn send_code() -> Result<(), Rejection> { body }
// Output: pub struct SendCodeLimits;
//         impl IntoResponses for SendCodeLimits {
//             fn responses() -> Responses { limit_responses("For all calls together: …", false) }
//         }
impl Expansion<'_> {
    pub(super) fn openapi(self, name: &Ident) -> TokenStream {
        let place = hygienic(name.span());
        let visibility = &self.function.visibility;
        let function = self.function.signature.ident.unraw();
        let documentation = format!("The responses to calls of `{function}` beyond its rate limits.");
        let limits = document::rejecting(self.model);
        // What a policy that is built elsewhere contains is not known here.
        let is_duplicate = |rule: &Rule| rule.role() == Role::Duplicate;
        let may_be_duplicate =
            self.model.policy.is_some() || self.model.rules.iter().any(|model| is_duplicate(&model.rule));
        let private = self.private();
        let implementation = quote_hygienic! {
            impl #private::IntoResponses for #name {
                fn responses() -> #private::Responses {
                    #private::responses(#limits, #may_be_duplicate)
                }
            }
        };
        quote_spanned! {place=>
            #[doc = #documentation]
            #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
            #visibility struct #name;
            #implementation
        }
    }
}
