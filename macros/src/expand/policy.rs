//! The policy, which is built at the first call, and the counts that each call evaluates.

use std::time::Duration;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::ext::IdentExt as _;
use tallygate_rules::{Algorithm, Ban, Role, Rule, TokenBucket};

use crate::debug;
use crate::diagnostic::Spanned;
use crate::expand::context::{Expansion, Target, quote_hygienic};
use crate::model::RuleModel;

impl Expansion<'_> {
    pub(super) fn policy(self) -> TokenStream {
        if self.model.policy.is_some() {
            return quote_hygienic!(tallygate_policy);
        }
        let private = self.private();
        let debug = debug::track_variable();
        let rules = self.model.rules.iter().map(|rule| self.rule(rule));
        let ban = self.model.ban.as_ref().map(|model| self.ban(model.ban));
        let cell = self.policy_cell();
        let policy = quote_hygienic!({
            #debug
            fn rules(tallygate_rules: &mut #private::Rules) {
                #(#rules)*
                #ban
            }
            static POLICY: #private::PolicyCell = #private::PolicyCell::#cell;
            POLICY.policy()
        });
        if self.has_varying_counts() {
            return quote_hygienic!(#private::with_counts(#policy, tallygate_counts));
        }
        policy
    }

    /// A policy without a name is named after the path of an item in the function: only that has the type of a method.
    fn policy_cell(self) -> TokenStream {
        if let Some(Spanned { value, .. }) = &self.model.name {
            return quote_hygienic!(named(#value, rules));
        }
        match self.target {
            Target::Limited => quote_hygienic!(unnamed(rules, rules)),
            Target::Companion => {
                let function = self.function.signature.ident.unraw().to_string();
                quote_hygienic!(unnamed_beside(#function, rules, rules))
            }
        }
    }

    fn ban(self, ban: Ban) -> TokenStream {
        let private = self.private();
        let denials = ban.denials();
        let within = duration(ban.within());
        let ban_duration = duration(ban.duration());
        quote_hygienic!(tallygate_rules.ban(#private::Ban::new(#denials, #within, #ban_duration));)
    }

    /// Evaluates the counts of all rules, if one of them varies.
    pub(super) fn counts(self) -> TokenStream {
        if !self.has_varying_counts() {
            return TokenStream::new();
        }
        let count = |model: &RuleModel| match &model.count {
            Some(varying) => self.function.in_scope(varying),
            None => model.rule.count().into_token_stream(),
        };
        let counts = self.model.rules.iter().map(count);
        let number = self.model.rules.len();
        quote_hygienic!(let tallygate_counts: [::core::primitive::u64; #number] = [#(#counts),*];)
    }

    pub(super) fn has_varying_counts(self) -> bool {
        self.model.rules.iter().any(|rule| rule.count.is_some())
    }

    fn rule(self, model: &RuleModel) -> TokenStream {
        let rule = &model.rule;
        let limit = self.limit(rule);
        let varying = rule.is_varying().then(|| quote_hygienic!(.varying()));
        let named = rule.name().map(|name| quote_hygienic!(.named(#name)));
        let rule = quote_hygienic!(#limit #varying #named);
        match self.model.label(model) {
            None => quote_hygienic!(tallygate_rules.rule(#rule);),
            Some(label) => quote_hygienic!(tallygate_rules.rule_on(#label, #rule);),
        }
    }

    fn limit(self, rule: &Rule) -> TokenStream {
        let private = self.private();
        let count = rule.count();
        match (rule.role(), rule.algorithm()) {
            (Role::Duplicate, Algorithm::SlidingWindow { per }) => {
                let per = duration(*per);
                quote_hygienic!(#private::Rule::duplicate(#per))
            }
            (_, Algorithm::SlidingWindow { per }) => {
                let per = duration(*per);
                quote_hygienic!(#private::Rule::sliding_window(#count, #per))
            }
            (_, Algorithm::FixedWindow { per }) => {
                let per = duration(*per);
                quote_hygienic!(#private::Rule::fixed_window(#count, #per))
            }
            (_, Algorithm::SlidingCounter { per }) => {
                let per = duration(*per);
                quote_hygienic!(#private::Rule::sliding_counter(#count, #per))
            }
            (_, Algorithm::TokenBucket(bucket)) => self.bucket(bucket, count),
            #[cfg(feature = "cron")]
            (_, Algorithm::Cron { schedule }) => {
                let expression = schedule.expression();
                let zone = schedule.zone();
                quote_hygienic!(#private::cron(#count, #expression, #zone))
            }
            _ => unreachable!("the attribute has no other algorithms"),
        }
    }

    fn bucket(self, bucket: &TokenBucket, count: u64) -> TokenStream {
        let private = self.private();
        let per = duration(bucket.per());
        let capacity = bucket.capacity().map(|tokens| quote_hygienic!(.with_capacity(#tokens)));
        let initial = bucket.initial().map(|tokens| quote_hygienic!(.with_initial(#tokens)));
        let reset_after = bucket.reset_after().map(duration).map(|idle| quote_hygienic!(.with_reset_after(#idle)));
        quote_hygienic!(#private::Rule::from_bucket(#count, #private::TokenBucket::new(#per) #capacity #initial #reset_after))
    }
}

pub(super) fn duration(duration: Duration) -> TokenStream {
    let seconds = duration.as_secs();
    let nanoseconds = duration.subsec_nanos();
    quote_hygienic!(::core::time::Duration::new(#seconds, #nanoseconds))
}
