//! The message of a rejection.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote_spanned};

use crate::diagnostic::SpanRange;
use crate::expand::context::{ExpandedFunction, Expansion, hygienic, quote_hygienic};
use crate::model::MessageScope;
use crate::template::{SpannedTemplate, TemplateValue, TextPart};

impl<'m> Expansion<'m> {
    /// Puts the message of the denying rule into the rejection, or else the message of the policy.
    ///
    /// Only a denial has a message. The runtime has the words for a call that could not be decided.
    pub(super) fn message(self) -> TokenStream {
        let private = self.private();
        let arms: Vec<_> = self.model.messages().map(|(denier, message)| self.arm(denier, message)).collect();
        if arms.is_empty() {
            return TokenStream::new();
        }
        quote_hygienic! {
            let tallygate_rejection = match #private::denying_rule(&tallygate_rejection) {
                #(#arms)*
                _ => tallygate_rejection,
            };
        }
    }

    /// Gives the check of a companion the messages of its function.
    pub(super) fn with_messages(self, check: TokenStream) -> TokenStream {
        let message = self.message();
        if message.is_empty() {
            return check;
        }
        let (private, values) = (self.private(), self.early_value_statements());
        quote_hygienic!({
            #values
            #private::with_messages(#check, move |tallygate_rejection| {
                #message
                tallygate_rejection
            })
        })
    }

    pub(super) fn early_value_statements(self) -> TokenStream {
        let value = |value: EarlyValue<'m>| {
            let pushed = self.push(&quote_hygienic!(&mut tallygate_value), value.placeholder, value.span);
            let name = value.name;
            quote_hygienic! {
                let #name = {
                    let mut tallygate_value = ::std::string::String::new();
                    #pushed
                    tallygate_value
                };
            }
        };
        self.early_values().map(value).collect()
    }

    /// Declares the early values as empty texts, for a call that is skipped.
    pub(super) fn no_early_values(self) -> TokenStream {
        let names = self.early_value_names();
        quote_hygienic!(#(let #names = ::std::string::String::new();)*)
    }

    pub(super) fn has_early_values(self) -> bool {
        self.early_values().next().is_some()
    }

    pub(super) fn early_value_names(self) -> impl Iterator<Item = Ident> {
        self.early_values().map(|value| value.name)
    }

    fn arm(self, denier: MessageScope, message: &SpannedTemplate) -> TokenStream {
        let private = self.private();
        let pattern = match denier {
            MessageScope::Rule(position) => quote_hygienic!(::core::option::Option::Some(#position)),
            MessageScope::Policy => quote_hygienic!(::core::option::Option::Some(_)),
            MessageScope::Ban => {
                quote_hygienic!(::core::option::Option::None if #private::is_ban(&tallygate_rejection))
            }
        };
        let parts = message.parts.iter().enumerate().map(|(index, part)| self.part(message, denier, index, part));
        quote_hygienic! {
            #pattern => {
                let mut tallygate_message = ::std::string::String::new();
                #(#parts)*
                tallygate_rejection.with_message(tallygate_message)
            }
        }
    }

    fn part(self, message: &SpannedTemplate, denier: MessageScope, index: usize, part: &TextPart) -> TokenStream {
        let private = self.private();
        let target = quote_hygienic!(&mut tallygate_message);
        match part {
            TextPart::Text(text) => quote_hygienic!(#private::push_text(#target, #text);),
            TextPart::Value(placeholder) if self.is_early(placeholder) => {
                let name = early_name(denier, index);
                // The check of a companion may be denied more than once.
                let value = if self.is_companion() { quote_hygienic!(#name.clone()) } else { quote_hygienic!(#name) };
                quote_hygienic!(#private::push_string(#target, #value);)
            }
            TextPart::Value(placeholder) => self.push(&target, placeholder, message.span),
            TextPart::Rejection(field) => {
                let field = format_ident!("{field:?}", span = Span::mixed_site());
                quote_hygienic!(#private::push_field(#target, #private::RejectionField::#field, &tallygate_rejection);)
            }
        }
    }

    /// Appends the value of a placeholder. An error about its type is reported at the template.
    fn push(self, target: &TokenStream, placeholder: &TemplateValue, span: SpanRange) -> TokenStream {
        if placeholder.is_in_context() {
            return self.push_in_context(target, placeholder, span);
        }
        let private = self.private_at(hygienic(span.first));
        let value = self.value(placeholder, span);
        quote_spanned!(hygienic(span.last)=> #private::push_shown(#target, #value);)
    }

    fn early_values(self) -> impl Iterator<Item = EarlyValue<'m>> {
        let of_messages = self.model.messages().flat_map(move |(denier, message)| {
            message.parts.iter().enumerate().filter_map(move |(index, part)| match part {
                TextPart::Value(placeholder) if self.is_early(placeholder) => {
                    Some(EarlyValue { name: early_name(denier, index), placeholder, span: message.span })
                }
                _ => None,
            })
        });
        of_messages.chain(self.late_key_values())
    }

    /// Returns whether the value is rendered before the decision.
    ///
    /// A future that the user wrote, and the check of a companion, must not capture an argument for a message. A digest
    /// needs the limiter, and a limiter that the user named is not held over the await.
    fn is_early(self, placeholder: &TemplateValue) -> bool {
        let needs_limiter = self.model.limiter.is_some() && placeholder.is_hashed();
        let outlives_arguments = self.function.ends_with_async_block() || self.is_companion();
        needs_limiter || outlives_arguments && !placeholder.is_in_context()
    }

    fn is_companion(self) -> bool {
        self.expanded == ExpandedFunction::Companion
    }
}

/// A value of a message, or of a late key, that is rendered before the decision.
pub(super) struct EarlyValue<'m> {
    pub(super) name: Ident,
    pub(super) placeholder: &'m TemplateValue,
    pub(super) span: SpanRange,
}

fn early_name(denier: MessageScope, part: usize) -> Ident {
    let message = match denier {
        MessageScope::Rule(position) => format!("rule_{position}"),
        MessageScope::Policy => "policy".to_owned(),
        MessageScope::Ban => "ban".to_owned(),
    };
    format_ident!("tallygate_value_{part}_of_{message}", span = Span::mixed_site())
}
