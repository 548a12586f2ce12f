//! The responses to rejected calls of a handler, for documents of OpenAPI.

use proc_macro2::{Ident, TokenStream};
use quote::quote_spanned;
use syn::ext::IdentExt as _;
use syn::{Expr, ExprPath};
use tallygate_rules::Role;

use crate::expand::context::{Expansion, hygienic, quote_hygienic};
use crate::expand::document;
use crate::model::RuleModel;

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
        let private = self.private();
        let responses = match &self.model.policy {
            // The policy itself knows its rules; of an expression over the arguments, nothing is known here.
            Some(policy) if self.is_item(policy) => quote_hygienic!(#private::limit_responses(&#policy)),
            policy => {
                let limits = document::rejecting(self.model);
                let is_duplicate = |model: &RuleModel| model.rule.role() == Role::Duplicate;
                let may_be_duplicate = policy.is_some() || self.model.rules.iter().any(is_duplicate);
                quote_hygienic!(#private::responses(#limits, #may_be_duplicate))
            }
        };
        let implementation = quote_hygienic! {
            impl #private::IntoResponses for #name {
                fn responses() -> #private::Responses {
                    #responses
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

    /// Whether an expression is the path of an item, which can be read without a call.
    fn is_item(self, expression: &Expr) -> bool {
        let Expr::Path(ExprPath { qself: None, path, .. }) = expression else { return false };
        path.get_ident().is_none_or(|name| self.function.binding(&name.unraw().to_string()).is_none())
    }
}
