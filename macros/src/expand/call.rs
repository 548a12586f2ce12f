//! What is asked of the limiter beside policy and subject, and what is made of the permit.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote_spanned};
use syn::Expr;

use super::policy::duration;
use super::{Expansion, borrowed, ours, ours_at};
use crate::attr::Amount;
use crate::diagnostic::Place;
use crate::shape::Around;

impl Expansion<'_> {
    /// Whether the call is more than rules and a subject.
    pub(super) fn says_more(self) -> bool {
        let model = self.model;
        let weighed = model.cost.is_some() || model.wait.is_some() || model.shadow.is_some();
        weighed || model.refund_if.is_some() || !model.others().is_empty()
    }

    /// Says what more there is to the call.
    pub(super) fn call(self) -> TokenStream {
        if !self.says_more() {
            return TokenStream::new();
        }
        let (private, model) = (self.private(), self.model);
        let cost = model.cost.as_ref().map(|cost| self.cost(cost));
        let weighed = model.cost.as_ref().map(|_| ours!(.cost(tallygate_cost)));
        let others = model.others().into_iter().map(|(label, key)| {
            let subject = self.rendered(key);
            ours!(.subject(#label, #subject))
        });
        let waiting = model.wait.as_ref().map(|wait| duration(wait.value)).map(|wait| ours!(.wait(#wait)));
        let refundable = model.refund_if.as_ref().map(|_| ours!(.refundable()));
        let shadow = model.shadow.map(|_| ours!(.shadow()));
        ours! {
            #cost
            let tallygate_call = #private::Call::new() #weighed #(#others)* #waiting #refundable #shadow;
        }
    }

    fn cost(self, cost: &Amount) -> TokenStream {
        let cost = match cost {
            Amount::Literal(cost) => cost.to_token_stream(),
            Amount::Expression(cost) => self.function.in_scope(cost),
        };
        // One of an array: what is of another type is underlined by itself, and not the attribute beside it.
        ours!(let [tallygate_cost]: [u64; 1] = [#cost];)
    }

    /// Takes the policy that is built elsewhere: whatever derefs to one will do.
    pub(super) fn named_policy(self) -> TokenStream {
        let Some(named) = &self.model.policy else { return TokenStream::new() };
        let place = Place::of(named);
        let (private, borrowed) =
            (self.private_at(ours_at(place.first)), borrowed(&self.function.in_scope(named), place));
        let policy = quote_spanned!(ours_at(place.last)=> #private::named(#borrowed));
        ours!(let tallygate_policy = #policy;)
    }

    /// Puts what names arguments into one value, which is `None` where the call is not limited.
    pub(super) fn unless_skipped(self, skip_if: &Expr, before: &TokenStream) -> TokenStream {
        let (place, skip_if, asked) = (Place::of(skip_if), self.function.in_scope(skip_if), self.asked());
        let skipped = quote_spanned!(ours_at(place.last)=> (#skip_if));
        ours! {
            let tallygate_asked = if #skipped {
                ::core::option::Option::None
            } else {
                #before
                ::core::option::Option::Some(#asked)
            };
        }
    }

    /// The names of what was said before, in one pattern or value.
    pub(super) fn asked(self) -> TokenStream {
        let limiter = self.model.limiter.as_ref().map(|_| ours!(tallygate_limiter,));
        let policy = self.model.policy.as_ref().map(|_| ours!(tallygate_policy,));
        let counts = self.varies().then(|| ours!(tallygate_counts,));
        let call = self.says_more().then(|| ours!(tallygate_call,));
        let shown = self.shown_names();
        ours!((#limiter #policy tallygate_subject, #counts #call #(#shown,)*))
    }

    // Input:  async fn login(user: &str) -> Result<Session, Error> { body }
    // Output: async fn login(user: &str) -> Result<Session, Error> {
    //             let tallygate_permit = { …; match enter_with(…).await { Ok(permit) => permit, Err(…) => return … } };
    //             let tallygate_result = async move {
    //                 if let Some(tallygate_result) = None::<Result<Session, Error>> { return tallygate_result; }
    //                 body
    //             }.await;
    //             let tallygate_refunded = is_refunded(&tallygate_result, Result::is_ok);
    //             if tallygate_refunded { refund(tallygate_permit).await; }
    //             tallygate_result
    //         }
    /// Gives the permit back behind a body whose result the user names.
    pub(super) fn around(self, refund_if: &Expr) -> Around {
        let (private, place, result) = (self.private(), Place::of(refund_if), self.function.result());
        let refund_if = self.function.in_scope(refund_if);
        let at_place = self.private_at(ours_at(place.first));
        let refunded = quote_spanned!(ours_at(place.last)=> #at_place::is_refunded(&tallygate_result, #refund_if));
        Around {
            permit: ours!(tallygate_permit),
            result: ours!(tallygate_result),
            // The type of what the body returns, which coercions and `?` need to know; nothing ever returns this.
            within: ours! {
                if let ::core::option::Option::Some(tallygate_result) = ::core::option::Option::None::<#result> {
                    return tallygate_result;
                }
            },
            behind: ours! {
                let tallygate_refunded: bool = #refunded;
                if tallygate_refunded {
                    #private::refund(tallygate_permit).await;
                }
                tallygate_result
            },
        }
    }
}
