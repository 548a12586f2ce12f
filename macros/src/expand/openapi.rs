//! The responses of a handler to rejected calls, for OpenAPI documents.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream};
use quote::quote_spanned;
use syn::ext::IdentExt as _;
use syn::{Expr, ExprPath, Type};
use tallygate_rules::{CALLS, Role};

use crate::expand::context::{Expansion, hygienic, quote_hygienic};
use crate::expand::document;
use crate::model::RuleModel;

// Input:  #[rate_limit(rule(count = 1, per = "60s"), openapi = SendCodeLimits)]
//         pub async fn send_code() -> Result<(), Rejection> { body }
// Output: pub struct SendCodeLimits;
//         impl IntoResponses for SendCodeLimits {
//             fn responses() -> Responses { responses("For all calls together: …", &[429], ["calls"]) }
//         }
impl<'m> Expansion<'m> {
    pub(super) fn openapi(self, name: &Ident) -> TokenStream {
        let place = hygienic(name.span());
        let visibility = &self.function.visibility;
        let function = self.function.signature.ident.unraw();
        let documentation = format!("The responses to calls of `{function}` beyond its rate limits.");
        let private = self.private();
        let responses = match &self.model.policy {
            // The policy rejects no call.
            _ if self.model.shadow.is_some() || self.has_only_rules_in_shadow() => {
                quote_hygienic!(#private::Responses::new())
            }
            // A policy that is an item is read when the document is made. An expression over the arguments has no value
            // then.
            Some(policy) if self.is_item(policy) => quote_hygienic!(#private::limit_responses(&#policy)),
            policy => {
                let limits = document::rejection_text(self.model);
                let statuses = match policy {
                    Some(_) => [429, 409].into_iter().chain(self.status_of_pauses()).collect(),
                    None => self.statuses_of_denials(),
                };
                let units = self.limited_units();
                quote_hygienic!(#private::responses(#limits, &[#(#statuses),*], [#(#units),*]))
            }
        };
        let responses = if self.is_rejection_answered_by_program() {
            quote_hygienic!(#private::without_content(#responses))
        } else {
            responses
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

    /// Whether only the program knows what a rejection becomes: by `reject`, or by an error type of its own.
    fn is_rejection_answered_by_program(self) -> bool {
        const KNOWN: [&str; 4] = ["Rejection", "Response", "HttpResponse", "ErrorResponse"];
        let is_known = |error: &Type| {
            let Type::Path(error) = error else { return false };
            let names: Vec<_> = error.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            // Programs have errors of the name `Error`, too.
            let is_of_actix = names.ends_with(&["actix_web".to_owned(), "Error".to_owned()]);
            is_of_actix || names.last().is_some_and(|name| KNOWN.contains(&&**name))
        };
        self.model.reject.is_some() || self.function.error_type().is_some_and(|error| !is_known(error))
    }

    fn enforced_rules(self) -> impl Iterator<Item = &'m RuleModel> {
        self.model.rules.iter().filter(|model| !model.rule.is_shadow())
    }

    fn has_only_rules_in_shadow(self) -> bool {
        !self.model.rules.is_empty() && self.enforced_rules().next().is_none()
    }

    fn statuses_of_denials(self) -> Vec<u16> {
        let (duplicates, limits): (Vec<_>, Vec<_>) =
            self.enforced_rules().partition(|model| model.rule.role() == Role::Duplicate);
        let limited = (!limits.is_empty() || self.model.ban.is_some()).then_some(429);
        limited.into_iter().chain((!duplicates.is_empty()).then_some(409)).chain(self.status_of_pauses()).collect()
    }

    fn status_of_pauses(self) -> Option<u16> {
        self.model.pause.is_some().then_some(503)
    }

    /// Returns what the limits count. Those of a policy that is known only at run time count calls.
    fn limited_units(self) -> BTreeSet<&'m str> {
        let limits = self.enforced_rules().filter(|model| model.rule.role() == Role::Limit);
        let of_policy = self.model.policy.as_ref().map(|_| CALLS);
        limits.map(|model| model.rule.counted()).chain(of_policy).collect()
    }

    /// Whether an expression is the path of an item, which exists without a call.
    fn is_item(self, expression: &Expr) -> bool {
        let Expr::Path(ExprPath { qself: None, path, .. }) = expression else { return false };
        path.get_ident().is_none_or(|name| self.function.binding(&name.unraw().to_string()).is_none())
    }
}
