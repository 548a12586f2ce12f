//! The expansion: from the model to tokens.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Expr;
use tallygate_rules::{Algorithm, Role, Rule};

use crate::diagnostic::Place;
use crate::model::Model;
use crate::shape::Function;
use crate::template::{Part, Template, escape};

// Input:  async fn send_code(phone: &str) -> Result<(), Rejection> { body }
// Output: async fn send_code(phone: &str) -> Result<(), Rejection> {
//             {
//                 let policy = { static SITE: Site = Site::new(); ... SITE.policy(|| path_of(here), RULES) };
//                 let mut subject = subject();
//                 push_literal(&mut subject, "sms:");
//                 push_value(&mut subject, &phone);
//                 if let Err(rejection) = enter(policy, Limiter::installed(), subject).await {
//                     return FromRejection::from_rejection(rejection);
//                 }
//             }
//             body
//         }
/// Returns the function with the check before its body.
///
/// Names are hygienic, and items stand where no expression of the user sees them. What is borrowed from the arguments is
/// given back before the await, so that the future is `Send` whenever it was.
pub(crate) fn expand(model: &Model, function: &Function) -> TokenStream {
    let policy = policy(model);
    let subject = model.key.as_ref().map_or_else(everyone, |key| subject(key, function));
    let limiter = limiter(model.limiter.as_ref());
    let reject = reject(function.returned());
    let check = quote_spanned! {Span::mixed_site()=>
        {
            let policy = #policy;
            #subject
            let limiter = #limiter;
            if let ::core::result::Result::Err(rejection) =
                ::tallygate::__private::enter(policy, limiter, subject).await
            {
                return #reject(rejection);
            }
        }
    };
    function.prepend(&check)
}

fn policy(model: &Model) -> TokenStream {
    let rules = model.rules.iter().map(|rule| self::rule(&rule.rule));
    let name = match &model.name {
        Some(name) => {
            let name = &name.value;
            quote_spanned!(Span::mixed_site()=> ::std::string::String::from(#name))
        }
        None => quote_spanned!(Span::mixed_site()=> ::tallygate::__private::path_of(here)),
    };
    let here = model.name.is_none().then(|| quote_spanned!(Span::mixed_site()=> const fn here() {}));
    quote_spanned! {Span::mixed_site()=> {
        const RULES: &[::tallygate::__private::Rule] = &[#(#rules),*];
        static SITE: ::tallygate::__private::Site = ::tallygate::__private::Site::new();
        #here
        SITE.policy(|| #name, RULES)
    }}
}

fn rule(rule: &Rule) -> TokenStream {
    let per = duration(rule.per());
    let count = rule.count();
    match (rule.role(), rule.algorithm()) {
        (Role::Duplicate, _) => quote!(::tallygate::__private::Rule::duplicate(#per)),
        (_, Algorithm::SlidingWindow { .. }) => quote!(::tallygate::__private::Rule::sliding_window(#count, #per)),
        _ => unreachable!("a model has no other rules"),
    }
}

fn duration(duration: std::time::Duration) -> TokenStream {
    let (seconds, nanoseconds) = (duration.as_secs(), duration.subsec_nanos());
    quote!(::core::time::Duration::new(#seconds, #nanoseconds))
}

fn everyone() -> TokenStream {
    quote_spanned!(Span::mixed_site()=> let subject = ::tallygate::__private::subject();)
}

fn subject(key: &Template, function: &Function) -> TokenStream {
    let parts = key.parts.iter().map(|part| match part {
        Part::Text(text) => {
            let text = escape(text);
            quote_spanned!(Span::mixed_site()=> ::tallygate::__private::push_literal(&mut subject, #text);)
        }
        Part::Value(value) => {
            let value = function.binding(&value.root).map(|root| value.expression(&root, key.place));
            quote_spanned!(Span::mixed_site()=> ::tallygate::__private::push_value(&mut subject, &#value);)
        }
    });
    quote_spanned! {Span::mixed_site()=>
        let mut subject = ::tallygate::__private::subject();
        #(#parts)*
    }
}

/// Cloned in a statement of its own: no temporary of the user's expression lives on to the await.
fn limiter(named: Option<&Expr>) -> TokenStream {
    let Some(named) = named else {
        return quote_spanned!(Span::mixed_site()=> ::tallygate::Limiter::installed());
    };
    let borrowed = quote_spanned!(at(Place::of(named).first)=> &(#named));
    quote_spanned! {Span::mixed_site()=> {
        let limiter: &::tallygate::Limiter = #borrowed;
        ::core::clone::Clone::clone(limiter)
    }}
}

/// From the first to the last token of the return type: a type that cannot carry a rejection is underlined there.
fn reject(returned: Place) -> TokenStream {
    let path = quote_spanned!(at(returned.first)=> ::tallygate::FromRejection::);
    let function = quote_spanned!(at(returned.last)=> from_rejection);
    quote!(#path #function)
}

/// A place of the user's with names of ours.
fn at(span: Span) -> Span {
    span.resolved_at(Span::mixed_site())
}
