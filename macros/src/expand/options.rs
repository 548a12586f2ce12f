//! The options of a call: its cost, its other subjects, and what happens to it when it is denied or done.

use proc_macro2::TokenStream;
use quote::ToTokens;

use crate::attr::Amount;
use crate::expand::context::{Expansion, Target, quote_hygienic};
use crate::expand::policy::duration;

impl Expansion<'_> {
    /// Returns whether the call has options.
    pub(super) fn has_options(self) -> bool {
        let model = self.model;
        let is_weighed = model.cost.is_some() || !model.other_subjects().is_empty();
        let is_handled = model.wait.is_some() || model.shadow.is_some() || model.refund_if.is_some();
        is_weighed || (is_handled && self.target == Target::Limited)
    }

    pub(super) fn options(self) -> TokenStream {
        if !self.has_options() {
            return TokenStream::new();
        }
        let private = self.private();
        let model = self.model;
        let cost_value = model.cost.as_ref().map(|cost| self.cost_value(cost));
        let cost = model.cost.as_ref().map(|cost| self.cost(cost));
        let subjects = model.other_subjects().into_iter().map(|other| {
            let label = other.label;
            let subject = self.subject(other.key);
            quote_hygienic!(.subject(#label, #subject))
        });
        let handling = (self.target == Target::Limited).then(|| self.handling());
        quote_hygienic! {
            #cost_value
            let tallygate_options = #private::Call::new() #cost #(#subjects)* #handling;
        }
    }

    /// Returns the options for how a denied or finished call is handled. Who gets the check of a call handles it by hand.
    fn handling(self) -> TokenStream {
        let model = self.model;
        let wait = model.wait.as_ref().map(|wait| duration(wait.value)).map(|wait| quote_hygienic!(.wait(#wait)));
        let refundable = model.refund_if.as_ref().map(|_| quote_hygienic!(.refundable()));
        let shadow = model.shadow.map(|_| quote_hygienic!(.shadow()));
        quote_hygienic!(#wait #refundable #shadow)
    }

    /// Returns the options that were prepared, or those of an ordinary call.
    pub(super) fn options_value(self) -> TokenStream {
        if self.has_options() {
            return quote_hygienic!(tallygate_options);
        }
        let private = self.private();
        quote_hygienic!(#private::Call::new())
    }

    fn cost_value(self, cost: &Amount) -> TokenStream {
        let cost = match cost {
            Amount::Literal(cost) => cost.to_token_stream(),
            Amount::Expression(cost) => self.function.in_scope(cost),
        };
        // An element of an array: the compiler underlines it alone when its type is wrong.
        quote_hygienic!(let [tallygate_cost]: [::core::primitive::u64; 1] = [#cost];)
    }

    /// A cost that depends on the arguments may depend on the client, which must not get free calls by that.
    fn cost(self, cost: &Amount) -> TokenStream {
        match cost {
            Amount::Expression(_) if self.model.allow_zero_cost.is_none() => {
                quote_hygienic!(.cost(::core::cmp::Ord::max(tallygate_cost, 1)))
            }
            _ => quote_hygienic!(.cost(tallygate_cost)),
        }
    }
}
