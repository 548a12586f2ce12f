//! The items of an expansion: the policy, which the first call builds, and the item that its name comes from.
//!
//! The user's expressions see these items, so they have names that no user code uses.

use std::time::Duration;

use proc_macro2::{Ident, Span, TokenStream};
use syn::ext::IdentExt as _;
use tallygate_rules::{Rule, format_rules};

use crate::debug;
use crate::diagnostic::Spanned;
use crate::expand::context::{ExpandedFunction, Expansion, quote_hygienic};
use crate::expand::subject::texts;

impl Expansion<'_> {
    /// Declares the policy, unless it is built elsewhere.
    pub(super) fn items(self) -> TokenStream {
        if self.model.policy.is_some() {
            return TokenStream::new();
        }
        let private = self.private();
        let debug = debug::track_variable();
        let cell = self.policy_cell();
        let labels = self.labels();
        let released = self.released_key();
        let ban = self.ban();
        let settings = self.settings();
        // Without `name`, the policy is named after the path of this item: in a method, only an item in its body has
        // the type in its path.
        let here = self.model.name.is_none().then(|| {
            quote_hygienic!(
                enum TallygateHere {}
            )
        });
        // A companion has the policy of its function, which announces it.
        let announced = (self.expanded == ExpandedFunction::Limited)
            .then(|| quote_hygienic!(#private::announce!(TALLYGATE_POLICY);));
        quote_hygienic! {
            #debug
            #here
            static TALLYGATE_POLICY: #private::PolicyCell = #private::PolicyCell::#cell #labels #released #ban #settings;
            #announced
        }
    }

    fn policy_cell(self) -> TokenStream {
        let rules: Vec<Rule> = self.model.rules.iter().map(|model| model.rule.clone()).collect();
        // A text is a single token for the compiler. The first call parses it.
        let rules = format_rules(&rules);
        let key = self.model.key.as_ref();
        let texts = texts(key);
        // Files may repeat the template, and tools show it. Without a key, all calls are counted together.
        let template = key.map_or("", |key| &key.text);
        if let Some(Spanned { value, .. }) = &self.model.name {
            return quote_hygienic!(named(#value, #rules, #texts, #template));
        }
        match self.expanded {
            ExpandedFunction::Limited => quote_hygienic!(around::<TallygateHere>(#rules, #texts, #template)),
            ExpandedFunction::Companion => {
                let function = self.function.signature.ident.unraw().to_string();
                quote_hygienic!(beside::<TallygateHere>(#function, #rules, #texts, #template))
            }
        }
    }

    /// Sets the labels of the rules on other subjects, with the positions of these rules.
    fn labels(self) -> Option<TokenStream> {
        let rules = self.model.rules.iter().enumerate();
        let labels = rules.filter_map(|(position, rule)| self.model.label(rule).map(|label| (position, label)));
        let labels: Vec<_> = labels.map(|(position, label)| quote_hygienic!((#position, #label))).collect();
        (!labels.is_empty()).then(|| quote_hygienic!(.on(&[#(#labels),*])))
    }

    /// Sets the key of released duplicates, whose label is not their key.
    fn released_key(self) -> Option<TokenStream> {
        let key = self.model.release()?.key;
        let text = key.map_or("", |key| key.text.as_str());
        Some(quote_hygienic!(.released_key(#text)))
    }

    /// Sets `on_outage`, `deadline`, `warn_at` and `prefetch`, and whether the subject can be paused.
    fn settings(self) -> TokenStream {
        let private = self.private();
        let on_outage = self.model.on_outage.as_ref().map(|on_outage| {
            // A variant is shown by its name.
            let variant = Ident::new(&format!("{:?}", on_outage.value), Span::mixed_site());
            quote_hygienic!(.on_outage(#private::OnOutage::#variant))
        });
        let deadline = self.model.deadline.as_ref().map(|deadline| duration(deadline.value));
        let deadline = deadline.map(|deadline| quote_hygienic!(.deadline(#deadline)));
        let warn_at = self.model.warn_at.as_ref().map(|share| share.value);
        let warn_at = warn_at.map(|share| quote_hygienic!(.warn_at(#share)));
        let prefetch = self.model.prefetch.as_ref().map(|ahead| duration(ahead.value));
        let prefetch = prefetch.map(|ahead| quote_hygienic!(.prefetch(#ahead)));
        let pause = match (&self.model.longest_pause, &self.model.pause) {
            (Some(longest), _) => {
                let longest = duration(longest.value);
                Some(quote_hygienic!(.longest_pause(#longest)))
            }
            (None, Some(_)) => Some(quote_hygienic!(.pausable())),
            (None, None) => None,
        };
        let paused = self.model.paused_label().map(|label| quote_hygienic!(.pausable_on(#label)));
        quote_hygienic!(#on_outage #deadline #warn_at #prefetch #pause #paused)
    }

    fn ban(self) -> Option<TokenStream> {
        let private = self.private();
        let ban = self.model.ban.as_ref()?.ban;
        let denials = ban.denials();
        let within = duration(ban.within());
        let ban_duration = duration(ban.duration());
        Some(quote_hygienic!(.ban(#private::Ban::new(#denials, #within, #ban_duration))))
    }
}

pub(super) fn duration(duration: Duration) -> TokenStream {
    let seconds = duration.as_secs();
    let nanoseconds = duration.subsec_nanos();
    quote_hygienic!(::core::time::Duration::new(#seconds, #nanoseconds))
}
