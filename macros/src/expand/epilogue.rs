//! What follows a body whose result is used: the refund of a call, and a response that is no type of the user's.

use proc_macro2::{Ident, TokenStream};
use quote::quote_spanned;
use syn::Expr;

use crate::diagnostic::SpanRange;
use crate::expand::context::{Expansion, hygienic, quote_hygienic};
use crate::model::Release;
use crate::shape::Epilogue;

impl Expansion<'_> {
    // Input:  async fn login(user: &str) -> Result<Session, Error> { body }
    // Output: async fn login(user: &str) -> Result<Session, Error> {
    //             let tallygate_permit = match { …; TALLYGATE_POLICY.call(…).refundable().enter() }.await {
    //                 Ok(tallygate_permit) => tallygate_permit,
    //                 Err(tallygate_rejection) => return …,
    //             };
    //             let tallygate_result = async move {
    //                 if let Some(tallygate_result) = None::<Result<Session, Error>> { return tallygate_result; }
    //                 body
    //             }.await;
    //             let tallygate_due = [refund_if(&tallygate_result, Result::is_ok)];
    //             finish(tallygate_permit, tallygate_due).await;
    //             tallygate_result
    //         }
    // A function that returns `impl IntoResponse` ends with this, and returns its rejections as a value of the same type:
    //             answered(tallygate_result)
    pub(super) fn epilogue(self) -> Option<Epilogue> {
        let is_refundable = self.model.is_refundable();
        if !is_refundable && !self.answers() {
            return None;
        }
        let finish = is_refundable.then(|| self.finish());
        let result = quote_hygienic!(tallygate_result);
        let returned = if self.answers() {
            let private = self.private();
            quote_hygienic!(#private::answered(tallygate_result))
        } else {
            result.clone()
        };
        Some(Epilogue {
            result,
            result_type: if self.answers() { TokenStream::new() } else { self.result_type() },
            after: quote_hygienic!(#finish #returned),
        })
    }

    /// Returns whether the function has to return a type of the runtime, as it may return any response.
    pub(super) fn answers(self) -> bool {
        self.model.reject.is_none() && self.function.returns_response()
    }

    /// Coercions and `?` need the type of the result. This statement never returns.
    fn result_type(self) -> TokenStream {
        let result_type = self.function.result_type();
        quote_hygienic! {
            if let ::core::option::Option::Some(tallygate_result) = ::core::option::Option::None::<#result_type> {
                return tallygate_result;
            }
        }
    }

    /// Refunds the whole call, or else its duplicates alone, or else settles it.
    fn finish(self) -> TokenStream {
        let private = self.private();
        let due = |name: &str, label: Option<&str>, function: &Expr| self.due(name, label, function);
        let refunded = self.model.refund_if.as_ref().map(|refund_if| due("refund_if", None, refund_if));
        let release = self.model.release();
        let released = release.map(|Release { label, condition, .. }| due("release_if", Some(label), condition));
        let settled = self.model.settle.as_ref().map(|settle| due("settle", None, settle));
        quote_hygienic! {
            let tallygate_due = [#refunded #released #settled];
            #private::finish(tallygate_permit, tallygate_due).await;
        }
    }

    /// Returns what is due by a function of the result, as the element of an array.
    fn due(self, name: &str, label: Option<&str>, function: &Expr) -> TokenStream {
        let span = SpanRange::of_tokens(function);
        let function = self.function.in_scope(function);
        let private = self.private_at(hygienic(span.first));
        let name = Ident::new(name, hygienic(span.last));
        let label = label.map(|label| quote_hygienic!(#label,));
        quote_spanned!(hygienic(span.last)=> #private::#name(#label &tallygate_result, #function),)
    }
}
