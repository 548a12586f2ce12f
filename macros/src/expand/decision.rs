//! The expression that awaits the decision and returns the rejection of a denied call, and the epilogue behind a body.
//! The epilogue refunds the call, gives a response of any type the function's return type, and lets the body of a
//! response hold the permit, so that the call is running until that body is over.

use proc_macro2::{Ident, TokenStream};
use quote::quote_spanned;
use syn::Expr;

use crate::diagnostic::SpanRange;
use crate::expand::context::{Expansion, hygienic, quote_hygienic};
use crate::model::Release;
use crate::shape::Epilogue;

impl Expansion<'_> {
    /// Gets the answer, and returns if it is a rejection. The value of the expression is the permit.
    pub(super) fn decision(self) -> TokenStream {
        let answer = self.answer();
        let message = self.message();
        let returned = self.returned_rejection();
        let permit = quote_hygienic! {
            match #answer {
                ::core::result::Result::Ok(tallygate_permit) => tallygate_permit,
                ::core::result::Result::Err(tallygate_rejection) => {
                    #message
                    return #returned;
                }
            }
        };
        if !self.is_metered() {
            return permit;
        }
        let private = self.private();
        let (metered, others) = (self.model.metered_units(), self.model.unmetered_units());
        quote_hygienic!(#private::metered(#permit, &[#(#metered),*], &[#(#others),*]))
    }

    fn is_metered(self) -> bool {
        self.model.metered_units().next().is_some()
    }

    /// Returns the name of the permit, or the pattern of the permit and of what the body meters. It begins with `_` if
    /// the permit is only kept, so that no lint calls it unused.
    pub(super) fn permit(self) -> TokenStream {
        if self.is_metered() {
            return quote_hygienic!((tallygate_permit, tallygate_metered));
        }
        let is_used = self.model.is_refundable() || self.model.is_pausable() || self.runs_until_body();
        if is_used { quote_hygienic!(tallygate_permit) } else { quote_hygienic!(_tallygate_permit) }
    }

    /// Its tokens have the span of the result's type, so the compiler underlines that type as a whole if it cannot be
    /// made of a rejection.
    fn returned_rejection(self) -> TokenStream {
        if let Some(reject) = &self.model.reject {
            return self.without_permit(self.rejected_by(reject));
        }
        let span = self.function.result_span();
        if self.returns_any_response() {
            let private = self.private_at(hygienic(span.first));
            return quote_spanned!(hygienic(span.last)=> #private::Answered::Rejected(tallygate_rejection));
        }
        let runtime = self.runtime_at(hygienic(span.first));
        quote_spanned!(hygienic(span.last)=> #runtime::FromRejection::from_rejection(tallygate_rejection))
    }

    fn rejected_by(self, reject: &Expr) -> TokenStream {
        let span = SpanRange::of_tokens(reject);
        let reject = self.function.in_scope(reject);
        let private = self.private_at(hygienic(span.first));
        quote_spanned!(hygienic(span.last)=> #private::reject(tallygate_rejection, #reject))
    }

    // Input:  async fn login(user: &str) -> Result<Session, Error> { body }
    // Output: async fn login(user: &str) -> Result<Session, Error> {
    //             let tallygate_permit = match { match { …; TALLYGATE_POLICY.call(…).refundable().enter() } {
    //                 Known(tallygate_admitted) => tallygate_admitted,
    //                 Waiting(tallygate_waiting) => tallygate_waiting.await,
    //             } } {
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
    // A function that is not async calls `run_body(move || { … body })` instead of the future, and `blocking_finish`. A
    // call that is running until the body of its response is over keeps what `finish_holding` returns of its permit,
    // and ends with this instead of the result:
    //             hold(tallygate_result, tallygate_permit)
    // A function with metered units runs its body so that it finds them:
    //             let (tallygate_permit, tallygate_metered) = metered(match … , &["tokens"], &["bytes"]);
    //             let tallygate_result = tallygate_metered.run(async move { … }).await;
    //             let tallygate_due = [settle_metered([])];
    // One that meters none of its units runs its body so that it finds none of a call around it:
    //             let tallygate_result = unmetered(&["bytes"]).run(async move { … }).await;
    // A function that returns `impl IntoResponse` ends with this, and its rejections have this type, too:
    //             Answered::Result(tallygate_result)
    pub(super) fn epilogue(self) -> Option<Epilogue> {
        let is_used = self.model.is_refundable() || self.model.is_pausable() || !self.model.units.is_empty();
        if !is_used && !self.returns_any_response() && !self.runs_until_body() {
            return None;
        }
        let due = self.due();
        let pause = self.pause();
        let finish = due.as_ref().map(|_| self.finish());
        let result = quote_hygienic!(tallygate_result);
        let response = if self.runs_until_body() { self.with_permit() } else { result.clone() };
        let returned = if self.returns_any_response() {
            let private = self.private();
            quote_hygienic!(#private::Answered::Result(#response))
        } else {
            response
        };
        Some(Epilogue {
            result,
            result_type: if self.returns_any_response() { TokenStream::new() } else { self.result_type() },
            run_body: self.run_body(),
            after: quote_hygienic!(#due #pause #finish #returned),
        })
    }

    /// Returns whether the function may return any response. Then it returns a type of the runtime.
    pub(super) fn returns_any_response(self) -> bool {
        self.model.reject.is_none() && self.function.returns_response()
    }

    /// Gives the result its type, which coercions and `?` need. The statement never returns.
    fn result_type(self) -> TokenStream {
        let result_type = self.function.result_type();
        quote_hygienic! {
            if let ::core::option::Option::Some(tallygate_result) = ::core::option::Option::None::<#result_type> {
                return tallygate_result;
            }
        }
    }

    /// Pauses the subject of the call, if the result says so, or says that the call has succeeded. The permit is then still there
    /// to be refunded or held.
    fn pause(self) -> Option<TokenStream> {
        if !self.model.is_pausable() {
            return None;
        }
        let private = self.private();
        let length =
            self.model.pause.as_ref().map_or_else(|| optional(None), |function| self.length_of_pause(function));
        let length = if self.may_refund() {
            quote_hygienic!(#private::unless_refunded(#length, &tallygate_due))
        } else {
            length
        };
        let paused = if self.function.is_blocking() {
            quote_hygienic!(#private::blocking_pause(tallygate_permit.as_ref(), tallygate_pause))
        } else {
            quote_hygienic!(#private::pause(tallygate_permit.as_ref(), tallygate_pause).await)
        };
        Some(quote_hygienic! {
            let tallygate_pause = #length;
            #paused;
        })
    }

    fn length_of_pause(self, function: &Expr) -> TokenStream {
        let span = SpanRange::of_tokens(function);
        let in_scope = self.function.in_scope(function);
        let private = self.private_at(hygienic(span.first));
        quote_spanned!(hygienic(span.last)=> #private::pause_by(&tallygate_result, #in_scope))
    }

    fn may_refund(self) -> bool {
        self.model.refund_if.is_some() || self.model.release().is_some()
    }

    /// Says what is to be corrected: a refund of the call on all subjects or on one, or only of its duplicates, or its
    /// settlement.
    fn due(self) -> Option<TokenStream> {
        let subject = self.model.refunded_subject();
        let refunded = self.model.refund_if.as_ref().map(|refund_if| match subject {
            Some(subject) => self.correction("refund_on", Some(optional(subject.label)), refund_if),
            None => self.correction("refund_if", None, refund_if),
        });
        let release = self.model.release();
        let released = release.map(|Release { label, condition, .. }| {
            self.correction("refund_on", Some(optional(Some(label))), condition)
        });
        let settled = self.settlement();
        if refunded.is_none() && released.is_none() && settled.is_none() {
            return None;
        }
        Some(quote_hygienic!(let tallygate_due = [#refunded #released #settled];))
    }

    /// Makes what is due.
    fn finish(self) -> TokenStream {
        let private = self.private();
        let finished = if self.function.is_blocking() {
            quote_hygienic!(#private::blocking_finish(tallygate_permit, tallygate_due))
        } else if self.runs_until_body() {
            quote_hygienic!(let tallygate_permit = #private::finish_holding(tallygate_permit, tallygate_due).await)
        } else {
            quote_hygienic!(#private::finish(tallygate_permit, tallygate_due).await)
        };
        quote_hygienic!(#finished;)
    }

    pub(super) fn runs_until_body(self) -> bool {
        self.model.until_body.is_some()
    }

    /// Returns the response, with a body that holds the permit if there is one.
    pub(super) fn with_permit(self) -> TokenStream {
        let permit = quote_hygienic!(tallygate_permit);
        self.held_beside(&quote_hygienic!(tallygate_result), &permit).unwrap_or_else(|| self.held_within())
    }

    /// Returns a response that holds no permit, with the type of one that holds a permit.
    pub(super) fn without_permit(self, response: TokenStream) -> TokenStream {
        let none = quote_hygienic!(::core::option::Option::None);
        let held = self.runs_until_body().then(|| self.held_beside(&response, &none)).flatten();
        held.unwrap_or(response)
    }

    /// The response is an expression that begins and ends where the result's type does, so the compiler underlines this
    /// type as a whole if it cannot hold a permit.
    fn held_within(self) -> TokenStream {
        let span = self.function.result_span();
        let private = self.private();
        let identity = quote_spanned!(hygienic(span.first)=> ::core::convert::identity);
        let response = quote_spanned!(hygienic(span.last)=> (tallygate_result));
        quote_hygienic!(#private::hold(#identity #response, tallygate_permit))
    }

    /// Holds the permit beside a response of any type. `None` if the response's type has a name.
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

    /// Returns the function that runs the body. An async block of a call without units needs none.
    fn run_body(self) -> Option<TokenStream> {
        let private = self.private();
        let is_blocking = self.function.is_blocking();
        if self.model.units.is_empty() {
            return is_blocking.then(|| quote_hygienic!(#private::run_body));
        }
        let call = if self.is_metered() {
            quote_hygienic!(tallygate_metered)
        } else {
            let units = self.model.unmetered_units();
            quote_hygienic!(#private::unmetered(&[#(#units),*]))
        };
        Some(if is_blocking { quote_hygienic!(#call.run_blocking) } else { quote_hygienic!(#call.run) })
    }

    /// Returns the settlement of the call. All units are settled at once.
    fn settlement(self) -> Option<TokenStream> {
        if self.model.units.is_empty() {
            return self.model.settle.as_ref().map(|settle| self.correction("settle", None, settle));
        }
        let used = self.model.settlements();
        let used: Vec<_> =
            used.map(|(unit, settle)| self.correction("used", Some(quote_hygienic!(#unit)), settle)).collect();
        let private = self.private();
        if self.is_metered() && !self.runs_until_body() {
            return Some(quote_hygienic!(#private::settle_metered([#(#used)*]),));
        }
        (!used.is_empty()).then(|| quote_hygienic!(#private::settle_units([#(#used)*]),))
    }

    /// Returns the correction that a function of the result decides, as the element of an array.
    fn correction(self, name: &str, label: Option<TokenStream>, function: &Expr) -> TokenStream {
        let span = SpanRange::of_tokens(function);
        let function = self.function.in_scope(function);
        let private = self.private_at(hygienic(span.first));
        let name = Ident::new(name, hygienic(span.last));
        let label = label.map(|label| quote_hygienic!(#label,));
        quote_spanned!(hygienic(span.last)=> #private::#name(#label &tallygate_result, #function),)
    }
}

/// The main subject has no label.
fn optional(label: Option<&str>) -> TokenStream {
    let some = label.map(|label| quote_hygienic!(::core::option::Option::Some(#label)));
    some.unwrap_or_else(|| quote_hygienic!(::core::option::Option::None))
}
