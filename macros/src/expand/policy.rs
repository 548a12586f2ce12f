//! The policy, which is built at the first call, and the counts that every call says anew.

use std::time::Duration;

use proc_macro2::TokenStream;
use quote::ToTokens;
use tallygate_rules::{Algorithm, Ban, Role, Rule, TokenBucket};

use super::{Expansion, ours};
use crate::debug;
use crate::diagnostic::Spanned;
use crate::rule::RuleModel;

impl Expansion<'_> {
    /// Returns nothing where the policy is built elsewhere.
    pub(super) fn policy(self) -> Option<TokenStream> {
        if self.model.policy.is_some() {
            return None;
        }
        let private = self.private();
        let rules = self.model.rules.iter().map(|rule| self.rule(rule));
        let ban = self.model.ban.as_ref().map(|model| self.ban(model.ban));
        let (made, debug) = (self.made(), debug::named());
        let policy = ours!({
            #debug
            fn rules(tallygate_rules: &mut #private::Rules) {
                #(#rules)*
                #ban
            }
            static POLICY: #private::PolicyCell = #private::PolicyCell::#made;
            POLICY.policy()
        });
        Some(if self.varies() { ours!(#private::with_counts(#policy, tallygate_counts)) } else { policy })
    }

    /// Without a name, an item within the function tells: only that knows the type that a method is of.
    fn made(self) -> TokenStream {
        if let Some(Spanned { value, .. }) = &self.model.name {
            return ours!(named(#value, rules));
        }
        ours!(unnamed(rules, rules))
    }

    fn ban(self, ban: Ban) -> TokenStream {
        let private = self.private();
        let (denials, within, lasting) = (ban.denials(), duration(ban.within()), duration(ban.duration()));
        ours!(tallygate_rules.ban(#private::Ban::new(#denials, #within, #lasting));)
    }

    /// Says how many calls each rule admits, if not all of that is known when compiling.
    pub(super) fn counts(self) -> TokenStream {
        if !self.varies() {
            return TokenStream::new();
        }
        let count = |model: &RuleModel| match &model.count {
            Some(varying) => self.function.in_scope(varying),
            None => model.rule.count().into_token_stream(),
        };
        let counts = self.model.rules.iter().map(count);
        ours!(let tallygate_counts: [u64; _] = [#(#counts),*];)
    }

    pub(super) fn varies(self) -> bool {
        self.model.rules.iter().any(|rule| rule.count.is_some())
    }

    fn rule(self, model: &RuleModel) -> TokenStream {
        let rule = &model.rule;
        let limit = self.limit(rule);
        let varying = rule.is_varying().then(|| ours!(.varying()));
        let named = rule.name().map(|name| ours!(.named(#name)));
        let rule = ours!(#limit #varying #named);
        let add = self.model.label(model).map_or_else(|| ours!(rule(#rule)), |label| ours!(rule_on(#label, #rule)));
        ours!(tallygate_rules.#add;)
    }

    fn limit(self, rule: &Rule) -> TokenStream {
        let private = self.private();
        let count = rule.count();
        match (rule.role(), rule.algorithm()) {
            (Role::Duplicate, Algorithm::SlidingWindow { per }) => {
                let per = duration(*per);
                ours!(#private::Rule::duplicate(#per))
            }
            (_, Algorithm::SlidingWindow { per }) => {
                let per = duration(*per);
                ours!(#private::Rule::sliding_window(#count, #per))
            }
            (_, Algorithm::FixedWindow { per }) => {
                let per = duration(*per);
                ours!(#private::Rule::fixed_window(#count, #per))
            }
            (_, Algorithm::SlidingCounter { per }) => {
                let per = duration(*per);
                ours!(#private::Rule::sliding_counter(#count, #per))
            }
            (_, Algorithm::TokenBucket(bucket)) => self.bucket(bucket, count),
            #[cfg(feature = "cron")]
            (_, Algorithm::Cron { schedule }) => {
                let (expression, zone) = (schedule.expression(), schedule.zone());
                ours!(#private::cron(#count, #expression, #zone))
            }
            _ => unreachable!("the attribute has no other algorithms"),
        }
    }

    fn bucket(self, bucket: &TokenBucket, count: u64) -> TokenStream {
        let private = self.private();
        let per = duration(bucket.per());
        let capacity = bucket.capacity().map(|tokens| ours!(.with_capacity(#tokens)));
        let initial = bucket.initial().map(|tokens| ours!(.with_initial(#tokens)));
        let reset_after = bucket.reset_after().map(duration).map(|idle| ours!(.with_reset_after(#idle)));
        ours!(#private::Rule::from_bucket(#count, #private::TokenBucket::new(#per) #capacity #initial #reset_after))
    }
}

pub(super) fn duration(duration: Duration) -> TokenStream {
    let (seconds, nanoseconds) = (duration.as_secs(), duration.subsec_nanos());
    ours!(::core::time::Duration::new(#seconds, #nanoseconds))
}
