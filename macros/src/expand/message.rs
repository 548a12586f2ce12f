//! What the caller of a rejected call is told.

use proc_macro2::{Ident, Span, TokenStream};
use quote::format_ident;

use super::{Expansion, ours};
use crate::diagnostic::Place;
use crate::model::Denier;
use crate::placeholder::{Filter, Placeholder};
use crate::template::{Part, RejectionField, Template};

impl<'m> Expansion<'m> {
    /// Puts the message of the rule that denied the call into the rejection, or that of the policy.
    ///
    /// Only a denial has one: an outage is neither the rule's doing nor the caller's.
    pub(super) fn told(self) -> TokenStream {
        let private = self.private();
        let arms: Vec<_> = self.model.messages().map(|(denier, message)| self.arm(denier, message)).collect();
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

    fn arm(self, denier: Denier, message: &Template) -> TokenStream {
        let private = self.private();
        let pattern = match denier {
            Denier::Rule(rule) => ours!(::core::option::Option::Some(#rule)),
            Denier::Policy => ours!(::core::option::Option::Some(_)),
            Denier::Ban => ours!(::core::option::Option::None if #private::is_ban(&tallygate_rejection)),
        };
        let parts = message.parts.iter().enumerate().map(|(part, what)| self.part(message, denier, part, what));
        ours! {
            #pattern => {
                let mut tallygate_message = ::std::string::String::new();
                #(#parts)*
                tallygate_rejection.with_message(tallygate_message)
            }
        }
    }

    fn part(self, message: &Template, denier: Denier, part: usize, what: &Part) -> TokenStream {
        let private = self.private();
        let target = ours!(&mut tallygate_message);
        match what {
            Part::Text(text) => ours!(#private::push_text(#target, #text);),
            Part::Value(placeholder) if self.is_shown_before(placeholder) => {
                let shown = shown(denier, part);
                ours!(#private::push_string(#target, #shown);)
            }
            Part::Value(placeholder) => self.pushed("push_shown", &target, placeholder, message.place),
            Part::Rejection(RejectionField::RetryAfter) => {
                ours!(#private::push_retry_after(#target, &tallygate_rejection);)
            }
            Part::Rejection(RejectionField::Count) => ours!(#private::push_count(#target, &tallygate_rejection);),
            Part::Rejection(RejectionField::Per) => ours!(#private::push_per(#target, &tallygate_rejection);),
            Part::Rejection(RejectionField::Rule) => ours!(#private::push_rule(#target, &tallygate_rejection);),
        }
    }

    /// Renders the values of messages that cannot be rendered when the call is rejected.
    pub(super) fn shown_before(self) -> TokenStream {
        let shown = |(shown, placeholder, place)| {
            let pushed = self.pushed("push_shown", &ours!(&mut tallygate_shown), placeholder, place);
            ours! {
                let #shown = {
                    let mut tallygate_shown = ::std::string::String::new();
                    #pushed
                    tallygate_shown
                };
            }
        };
        self.all_shown_before().map(shown).collect()
    }

    /// Returns the names of those values.
    pub(super) fn shown_names(self) -> impl Iterator<Item = Ident> {
        self.all_shown_before().map(|(shown, ..)| shown)
    }

    fn all_shown_before(self) -> impl Iterator<Item = (Ident, &'m Placeholder, Place)> {
        self.model.messages().flat_map(move |(denier, message)| {
            message.parts.iter().enumerate().filter_map(move |(part, what)| match what {
                Part::Value(placeholder) if self.is_shown_before(placeholder) => {
                    Some((shown(denier, part), placeholder, message.place))
                }
                _ => None,
            })
        })
    }

    /// A future of the user's own is not to keep an argument for us, and the limiter is gone when the call is rejected.
    fn is_shown_before(self, placeholder: &Placeholder) -> bool {
        self.function.is_split() || placeholder.filters.contains(&Filter::Hash)
    }
}

/// The name of a value that is rendered before the call is decided.
fn shown(denier: Denier, part: usize) -> Ident {
    let message = match denier {
        Denier::Rule(rule) => format!("rule_{rule}"),
        Denier::Policy => "policy".to_owned(),
        Denier::Ban => "ban".to_owned(),
    };
    format_ident!("tallygate_shown_{message}_{part}", span = Span::mixed_site())
}
