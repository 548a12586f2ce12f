//! The expression of a call: its policy, its subjects and its options.

use proc_macro2::TokenStream;
use quote::ToTokens;

use crate::attr::Amount;
use crate::diagnostic::SpanRange;
use crate::expand::context::{ExpandedFunction, Expansion, borrowed, quote_hygienic};
use crate::expand::policy::duration;
use crate::expand::subject::texts;
use crate::model::RuleModel;
use crate::template::SpannedTemplate;

impl Expansion<'_> {
    pub(super) fn entering(self) -> TokenStream {
        let enter = if self.function.is_blocking() { quote_hygienic!(blocking_enter) } else { quote_hygienic!(enter) };
        if self.model.policy.is_none() && self.options().is_empty() {
            let values = self.values(self.model.key.as_ref());
            return quote_hygienic!(TALLYGATE_POLICY.#enter(#values));
        }
        let call = self.call();
        quote_hygienic!(#call.#enter())
    }

    pub(super) fn call(self) -> TokenStream {
        let key = self.model.key.as_ref();
        let values = self.values_now(key);
        let options = self.options();
        let Some(policy) = &self.model.policy else {
            return quote_hygienic!(TALLYGATE_POLICY.call(#values) #options);
        };
        let private = self.private();
        let policy = borrowed(&self.function.in_scope(policy), SpanRange::of_tokens(policy));
        let texts = texts(key);
        quote_hygienic!(#private::call([#policy], #texts, #values) #options)
    }

    /// Returns the values of a key, or nothing if keys are rendered later.
    fn values_now(self, key: Option<&SpannedTemplate>) -> TokenStream {
        if self.has_late_keys() { quote_hygienic!(()) } else { self.values(key) }
    }

    /// Evaluates the user's limiter before the code. In a `match`, its temporaries live until the code has run.
    pub(super) fn with_limiter(self, code: TokenStream) -> TokenStream {
        let Some(limiter) = &self.model.limiter else { return code };
        let private = self.private();
        let borrowed = borrowed(&self.function.in_scope(limiter), SpanRange::of_tokens(limiter));
        quote_hygienic! {
            match #private::limiter([#borrowed]) {
                tallygate_limiter => #code
            }
        }
    }

    /// Returns the options of the call, as method calls.
    fn options(self) -> TokenStream {
        let limiter = self.model.limiter.as_ref().map(|_| quote_hygienic!(.limiter(tallygate_limiter)));
        let counts = self.counts();
        let cost = self.model.cost.as_ref().map(|cost| self.cost(cost));
        let units = self.units();
        let subjects = self.other_subjects();
        let handling = (self.expanded == ExpandedFunction::Limited).then(|| self.handling());
        quote_hygienic!(#limiter #counts #cost #units #(#subjects)* #handling)
    }

    /// Evaluates the counts of all rules, if a count varies.
    fn counts(self) -> Option<TokenStream> {
        let rules = &self.model.rules;
        let count = |model: &RuleModel| match &model.count {
            Some(varying) => self.function.in_scope(varying),
            None => model.rule.count().into_token_stream(),
        };
        let counts = rules.iter().map(count);
        rules.iter().any(|rule| rule.count.is_some()).then(|| quote_hygienic!(.counts([#(#counts),*])))
    }

    /// The cost may depend on arguments that a client chooses, so it is at least 1: no client gets free calls.
    fn cost(self, cost: &Amount) -> TokenStream {
        match cost {
            Amount::Literal(cost) => quote_hygienic!(.cost([#cost])),
            Amount::Expression(cost) => {
                let cost = self.function.in_scope(cost);
                if self.model.allow_zero_cost.is_some() {
                    quote_hygienic!(.cost([#cost]))
                } else {
                    quote_hygienic!(.cost_or_one([#cost]))
                }
            }
        }
    }

    /// Evaluates the costs in the units. A unit without a cost is not named: it is charged afterwards.
    fn units(self) -> TokenStream {
        let costs = self.model.units.iter().filter_map(|unit| {
            let name = unit.name()?;
            let cost = match unit.cost.as_ref()? {
                Amount::Literal(cost) => cost.into_token_stream(),
                Amount::Expression(cost) => self.function.in_scope(cost),
            };
            Some(quote_hygienic!(.cost_of(#name, [#cost])))
        });
        costs.collect()
    }

    fn other_subjects(self) -> Vec<TokenStream> {
        let subject = |label: &str, key| {
            let texts = texts(key);
            let values = self.values_now(key);
            quote_hygienic!(.subject(#label, #texts, #values))
        };
        self.model.other_subjects().into_iter().map(|other| subject(other.label, other.key)).collect()
    }

    /// Returns the options for a denied or finished call. The caller of a companion handles these by hand.
    fn handling(self) -> TokenStream {
        let model = self.model;
        let wait = model.wait.as_ref().map(|wait| duration(wait.value)).map(|wait| quote_hygienic!(.wait(#wait)));
        let refundable = model.is_refundable().then(|| quote_hygienic!(.refundable()));
        let shadow = model.shadow.map(|_| quote_hygienic!(.shadow()));
        // Only the policy of an attribute that has its rules is known to be pausable.
        let pausing = model.policy.as_ref().and(model.pause.as_ref()).map(|_| quote_hygienic!(.pausing()));
        quote_hygienic!(#wait #refundable #shadow #pausing)
    }
}
