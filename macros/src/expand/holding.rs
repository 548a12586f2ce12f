//! A response whose body holds the permit, so that its call is running until that is over.

use proc_macro2::TokenStream;
use quote::quote_spanned;

use crate::expand::context::{Expansion, hygienic, quote_hygienic};

impl Expansion<'_> {
    /// Returns whether a call is running until the body of its response is over.
    pub(super) fn runs_until_body(self) -> bool {
        self.model.until_body().is_some()
    }

    /// Returns the response whose body holds the permit, if the call has one.
    pub(super) fn with_permit(self) -> TokenStream {
        let permit = quote_hygienic!(tallygate_permit);
        self.held_beside(&quote_hygienic!(tallygate_result), &permit).unwrap_or_else(|| self.held_within())
    }

    /// Returns the response to a call without a permit, as a value of the same type.
    pub(super) fn without_permit(self, response: TokenStream) -> TokenStream {
        let none = quote_hygienic!(::core::option::Option::None);
        let held = self.runs_until_body().then(|| self.held_beside(&response, &none)).flatten();
        held.unwrap_or(response)
    }

    /// The response is passed as an expression that begins and ends where the result's type does, so the compiler underlines
    /// this type as a whole if it cannot hold a permit.
    fn held_within(self) -> TokenStream {
        let span = self.function.result_span();
        let private = self.private();
        let identity = quote_spanned!(hygienic(span.first)=> ::core::convert::identity);
        let response = quote_spanned!(hygienic(span.last)=> (tallygate_result));
        quote_hygienic!(#private::hold(#identity #response, tallygate_permit))
    }

    /// Of a response of any type, the permit is held beside it. `None` if its type has a name.
    fn held_beside(self, response: &TokenStream, permit: &TokenStream) -> Option<TokenStream> {
        let private = self.private();
        if self.function.returns_response() {
            return Some(quote_hygienic!(#private::hold_any(#response, #permit)));
        }
        let in_result = quote_hygienic! {
            #response.map(|tallygate_response| #private::hold_any(tallygate_response, #permit))
        };
        self.function.returns_response_in_result().then_some(in_result)
    }
}
