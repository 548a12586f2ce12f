//! The expansion: from the model to tokens.

mod call;
mod message;
mod policy;
mod subject;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::Expr;

use crate::diagnostic::Place;
use crate::document;
use crate::model::Model;
use crate::shape::{Additions, Function};

/// Quotes tokens of ours: their local names are not the user's, whatever those are called.
macro_rules! ours {
    ($($tokens:tt)*) => { ::quote::quote_spanned!(::proc_macro2::Span::mixed_site()=> $($tokens)*) };
}
use ours;

// Input:  async fn send_code(phone: &str) -> Result<(), Rejection> { body }
// Output: async fn send_code(phone: &str) -> Result<(), Rejection> {
//             {
//                 let tallygate_limiter = limiter(&self.limiter);          // if one is named
//                 let mut tallygate_subject = subject();
//                 push_literal(&mut tallygate_subject, "sms:");
//                 push_value(&mut tallygate_subject, &phone);
//                 let tallygate_counts = [1, user.plan.calls()];           // if some count varies
//                 let tallygate_call = Call::new().cost(…);                // if the attribute says more than rules
//                 if let Err(tallygate_rejection) = enter({ fn rules(…) { … } static POLICY: PolicyCell = …; POLICY.policy() },
//                                                         tallygate_subject).await {
//                     return FromRejection::from_rejection(tallygate_rejection.with_message(…));
//                 }
//             }
//             body
//         }
/// Returns the function with the check before its body, or before the async block that its body ends with.
///
/// Items of ours stand where no expression of the user's sees them. What is borrowed from the arguments is given back
/// before the await, so that the future is `Send` whenever it was without us.
pub(crate) fn expand(model: &Model, function: &Function) -> TokenStream {
    let expansion = Expansion { model, function };
    let attributes = document::attributes(model, function);
    let around = model.refund_if.as_ref().map(|refund_if| expansion.around(refund_if));
    function.with(&Additions { attributes, before: expansion.before(), check: expansion.check(), around })
}

/// What is expanded.
#[derive(Clone, Copy)]
struct Expansion<'a> {
    model: &'a Model,
    function: &'a Function,
}

impl Expansion<'_> {
    /// What names arguments.
    fn before(self) -> TokenStream {
        let limiter = self.model.limiter.as_ref().map(|named| self.limiter(named));
        let (policy, subject) = (self.named_policy(), self.subject());
        let (counts, call, shown) = (self.counts(), self.call(), self.shown_before());
        let before = ours!(#limiter #policy #subject #counts #call #shown);
        match &self.model.skip_if {
            Some(skip_if) => self.unless_skipped(skip_if, &before),
            None => before,
        }
    }

    fn check(self) -> TokenStream {
        let check = self.decided();
        if self.model.skip_if.is_none() {
            return check;
        }
        let (asked, otherwise) =
            (self.asked(), self.model.refund_if.as_ref().map(|_| ours!(else { ::core::option::Option::None })));
        ours! {
            if let ::core::option::Option::Some(#asked) = tallygate_asked {
                #check
            } #otherwise
        }
    }

    /// Decides, and leaves the function if the call is rejected. Where the permit is wanted, it is the value.
    fn decided(self) -> TokenStream {
        let (entered, told, carried) = (self.entered(), self.told(), self.carried());
        let rejected = ours!({
            #told
            return #carried;
        });
        if self.model.refund_if.is_none() {
            return ours!(if let ::core::result::Result::Err(tallygate_rejection) = #entered #rejected);
        }
        ours! {
            match #entered {
                ::core::result::Result::Ok(tallygate_permit) => tallygate_permit,
                ::core::result::Result::Err(tallygate_rejection) => #rejected
            }
        }
    }

    fn entered(self) -> TokenStream {
        let private = self.private();
        let policy = self.policy().unwrap_or_else(|| ours!(tallygate_policy));
        let (names_limiter, says_more) = (self.model.limiter.is_some(), self.says_more());
        if !names_limiter && !says_more {
            return ours!(#private::enter(#policy, tallygate_subject).await);
        }
        let limiter = if names_limiter { ours!(tallygate_limiter) } else { ours!(#private::installed()) };
        let call = if says_more { ours!(tallygate_call) } else { ours!(#private::Call::new()) };
        ours!(#private::enter_with(#policy, #limiter, tallygate_subject, #call).await)
    }

    /// The runtime, which expansions call by an absolute path; where the user wrote it, that is its place.
    fn runtime(self) -> TokenStream {
        self.model.runtime.as_ref().map_or_else(|| ours!(::tallygate), ToTokens::to_token_stream)
    }

    fn private(self) -> TokenStream {
        let runtime = self.runtime();
        ours!(#runtime::__private)
    }

    /// The same at a place of the user's: an error about what is called there is one about that place.
    fn runtime_at(self, place: Span) -> TokenStream {
        let at_place = |mut tree: TokenTree| {
            tree.set_span(place.resolved_at(tree.span()));
            tree
        };
        self.runtime().into_iter().map(at_place).collect()
    }

    fn private_at(self, place: Span) -> TokenStream {
        let runtime = self.runtime_at(place);
        quote_spanned!(place=> #runtime::__private)
    }

    /// Borrows the named limiter in a statement of its own: no temporary of the user's expression lives on to the await.
    ///
    /// Whatever derefs to a limiter will do, and anything else is a plain type error at its place.
    fn limiter(self, named: &Expr) -> TokenStream {
        let place = Place::of(named);
        let (private, borrowed) =
            (self.private_at(ours_at(place.first)), borrowed(&self.function.in_scope(named), place));
        let limiter = quote_spanned!(ours_at(place.last)=> #private::limiter(#borrowed));
        ours!(let tallygate_limiter = #limiter;)
    }

    /// The limiter that is installed at that moment.
    fn installed(self) -> TokenStream {
        let runtime = self.runtime();
        ours!(#runtime::Limiter::installed())
    }

    /// Returns the value that carries the rejection back.
    ///
    /// All of it is at the return type: one that cannot carry a rejection is underlined, from its first to its last token.
    fn carried(self) -> TokenStream {
        if let Some(reject) = &self.model.reject {
            return self.rejected(reject);
        }
        let returned = self.function.returned();
        let runtime = self.runtime_at(ours_at(returned.first));
        quote_spanned!(ours_at(returned.last)=> #runtime::FromRejection::from_rejection(tallygate_rejection))
    }

    /// Makes that value as the user says, all of it at the place where that is said.
    fn rejected(self, reject: &Expr) -> TokenStream {
        let (place, reject) = (Place::of(reject), self.function.in_scope(reject));
        let private = self.private_at(ours_at(place.first));
        quote_spanned!(ours_at(place.last)=> #private::reject(tallygate_rejection, #reject))
    }
}

/// Borrows an expression of the user's where it is written.
fn borrowed(expression: &impl ToTokens, place: Place) -> TokenStream {
    let reference = quote_spanned!(ours_at(place.first)=> &);
    let parenthesized = quote_spanned!(ours_at(place.last)=> (#expression));
    ours!(#reference #parenthesized)
}

/// A place of the user's for names of ours.
fn ours_at(place: Span) -> Span {
    place.resolved_at(Span::mixed_site())
}
