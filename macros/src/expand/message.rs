//! What the caller of a rejected call is told.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident};

use super::{Expansion, ours};
use crate::placeholder::{Filter, Placeholder};
use crate::template::{Part, Template, Told};

impl Expansion<'_> {
    /// Puts the message of the rule that denied the call into the rejection, or that of the policy.
    ///
    /// Only a denial has one: an outage is neither the rule's doing nor the caller's.
    pub(super) fn told(self) -> TokenStream {
        let private = self.private();
        let arms: Vec<_> = self.model.messages().map(|(rule, message)| self.arm(rule, message)).collect();
        if arms.is_empty() {
            return TokenStream::new();
        }
        ours! {
            let tallygate_rejection = match #private::denying_rule(&tallygate_rejection) {
                #(#arms)*
                _ => tallygate_rejection,
            };
        }
    }

    fn arm(self, rule: Option<usize>, message: &Template) -> TokenStream {
        let denied_by = rule.map_or_else(|| ours!(_), ToTokens::into_token_stream);
        let parts = message.parts.iter().enumerate().map(|(part, what)| self.part(message, rule, part, what));
        ours! {
            ::core::option::Option::Some(#denied_by) => {
                let mut tallygate_message = ::std::string::String::new();
                #(#parts)*
                tallygate_rejection.with_message(tallygate_message)
            }
        }
    }

    fn part(self, message: &Template, rule: Option<usize>, part: usize, what: &Part) -> TokenStream {
        let private = self.private();
        let target = ours!(&mut tallygate_message);
        match what {
            Part::Text(text) => ours!(#private::push_text(#target, #text);),
            Part::Value(placeholder) if self.is_shown_before(placeholder) => {
                let shown = shown(rule, part);
                ours!(#private::push_string(#target, #shown);)
            }
            Part::Value(placeholder) => self.pushed("push_shown", &target, placeholder, message.place),
            Part::Told(Told::RetryAfter) => ours!(#private::push_retry_after(#target, &tallygate_rejection);),
            Part::Told(Told::Count) => ours!(#private::push_count(#target, &tallygate_rejection);),
            Part::Told(Told::Per) => ours!(#private::push_per(#target, &tallygate_rejection);),
            Part::Told(Told::Rule) => ours!(#private::push_rule(#target, &tallygate_rejection);),
        }
    }

    /// Renders the values of messages that cannot be rendered when the call is rejected.
    pub(super) fn shown_before(self) -> TokenStream {
        self.model.messages().flat_map(|(rule, message)| self.shown_of(rule, message)).collect()
    }

    fn shown_of(self, rule: Option<usize>, message: &Template) -> impl Iterator<Item = TokenStream> {
        message.parts.iter().enumerate().filter_map(move |(part, what)| match what {
            Part::Value(placeholder) if self.is_shown_before(placeholder) => {
                let (shown, target) = (shown(rule, part), ours!(&mut tallygate_shown));
                let pushed = self.pushed("push_shown", &target, placeholder, message.place);
                Some(ours! {
                    let #shown = {
                        let mut tallygate_shown = ::std::string::String::new();
                        #pushed
                        tallygate_shown
                    };
                })
            }
            _ => None,
        })
    }

    /// A future of the user's own is not to keep an argument for us, and the limiter is gone when the call is rejected.
    fn is_shown_before(self, placeholder: &Placeholder) -> bool {
        self.function.is_split() || placeholder.filters.contains(&Filter::Hash)
    }
}

/// The name of a value that is rendered before the call is decided.
fn shown(rule: Option<usize>, part: usize) -> Ident {
    let message = rule.map_or_else(|| "policy".to_owned(), |rule| format!("rule_{rule}"));
    format_ident!("tallygate_shown_{message}_{part}", span = Span::mixed_site())
}
