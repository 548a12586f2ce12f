//! The expansion: from the model to tokens.

use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::Expr;
use tallygate_rules::{Algorithm, Role, Rule};

use crate::diagnostic::{Place, Spanned};
use crate::model::Model;
use crate::shape::{Additions, Function};
use crate::template::{Part, Placeholder, Template, escape};

/// Quotes tokens of ours: their local names are not the user's, whatever those are called.
macro_rules! ours {
    ($($tokens:tt)*) => { quote_spanned!(Span::mixed_site()=> $($tokens)*) };
}

// Input:  async fn send_code(phone: &str) -> Result<(), Rejection> { body }
// Output: async fn send_code(phone: &str) -> Result<(), Rejection> {
//             {
//                 let tallygate_subject = { …; push_literal(&mut …, "sms:"); push_value(&mut …, &phone); … };
//                 let tallygate_policy = { static SITE: Site = Site::new(); … SITE.policy(|| path_of(here), RULES) };
//                 let tallygate_limiter = Limiter::installed();
//                 if let Err(tallygate_rejection) = enter(tallygate_policy, tallygate_limiter, tallygate_subject).await {
//                     return FromRejection::from_rejection(tallygate_rejection);
//                 }
//             }
//             body
//         }
/// Returns the function with the check before its body, or before the async block that its body ends with.
///
/// Items of ours stand where no expression of the user's sees them. What is borrowed from the arguments is given back
/// before the await, so that the future is `Send` whenever it was without us.
pub(crate) fn expand(model: &Model, function: &Function) -> TokenStream {
    function.with(&Additions {
        attributes: TokenStream::new(),
        before: before(model, function),
        check: check(model, function),
    })
}

/// What names arguments.
fn before(model: &Model, function: &Function) -> TokenStream {
    let subject = subject(model.key.as_ref(), function);
    let limiter = model.limiter.as_ref().map(|named| limiter(named, function));
    ours!(#subject #limiter)
}

fn check(model: &Model, function: &Function) -> TokenStream {
    let (private, policy) = (private(Span::mixed_site()), policy(model));
    let limiter = model.limiter.is_none().then(installed);
    let carried = carried(function.returned());
    ours! {
        let tallygate_policy = #policy;
        #limiter
        if let ::core::result::Result::Err(tallygate_rejection) =
            #private::enter(tallygate_policy, tallygate_limiter, tallygate_subject).await
        {
            return #carried;
        }
    }
}

/// The runtime, which expansions call by an absolute path.
fn runtime(place: Span) -> TokenStream {
    quote_spanned!(place=> ::tallygate)
}

fn private(place: Span) -> TokenStream {
    let runtime = runtime(place);
    quote_spanned!(place=> #runtime::__private)
}

/// Builds the policy at the first call.
fn policy(model: &Model) -> TokenStream {
    let private = private(Span::mixed_site());
    let rules = model.rules.iter().map(|rule| self::rule(&rule.rule));
    let name = name(model);
    ours!({
        const RULES: &[#private::Rule] = &[#(#rules),*];
        static SITE: #private::Site = #private::Site::new();
        SITE.policy(|| #name, RULES)
    })
}

/// Without a name, an item within the function tells: only that knows the type that a method is of.
fn name(model: &Model) -> TokenStream {
    if let Some(Spanned { value, .. }) = &model.name {
        return ours!(::std::string::String::from(#value));
    }
    let private = private(Span::mixed_site());
    ours!({
        const fn here() {}
        #private::path_of(here)
    })
}

fn rule(rule: &Rule) -> TokenStream {
    let private = private(Span::mixed_site());
    let (count, per) = (rule.count(), duration(rule.per().unwrap_or_default()));
    match (rule.role(), rule.algorithm()) {
        (Role::Duplicate, _) => ours!(#private::Rule::duplicate(#per)),
        (Role::Limit, Algorithm::SlidingWindow { .. }) => ours!(#private::Rule::sliding_window(#count, #per)),
        _ => unreachable!("the attribute has no other rules"),
    }
}

fn duration(duration: Duration) -> TokenStream {
    let (seconds, nanoseconds) = (duration.as_secs(), duration.subsec_nanos());
    ours!(::core::time::Duration::new(#seconds, #nanoseconds))
}

/// Renders the subject, which owns what it shows.
fn subject(key: Option<&Template>, function: &Function) -> TokenStream {
    let private = private(Span::mixed_site());
    let Some(key) = key else {
        return ours!(let tallygate_subject = #private::subject(););
    };
    let parts = key.parts.iter().map(|part| match part {
        Part::Text(text) => {
            let text = escape(text);
            ours!(#private::push_literal(&mut tallygate_subject, #text);)
        }
        Part::Value(placeholder) => value(placeholder, key.place, function),
    });
    ours! {
        let tallygate_subject = {
            let mut tallygate_subject = #private::subject();
            #(#parts)*
            tallygate_subject
        };
    }
}

/// Adds a value, at the place of its template: an error about its type is one about the template.
fn value(placeholder: &Placeholder, place: Place, function: &Function) -> TokenStream {
    let value = function.binding(&placeholder.root).map(|root| placeholder.expression(&root, place));
    let (private, borrowed) = (private(ours_at(place.first)), borrowed(&value, place));
    quote_spanned!(ours_at(place.last)=> #private::push_value(&mut tallygate_subject, #borrowed);)
}

/// Borrows the named limiter in a statement of its own: no temporary of the user's expression lives on to the await.
///
/// Whatever derefs to a limiter will do, and anything else is a plain type error at its place.
fn limiter(named: &Expr, function: &Function) -> TokenStream {
    let place = Place::of(named);
    let (private, borrowed) = (private(ours_at(place.first)), borrowed(&function.in_scope(named), place));
    let limiter = quote_spanned!(ours_at(place.last)=> #private::limiter(#borrowed));
    ours!(let tallygate_limiter = #limiter;)
}

/// The limiter that is installed when the check is made.
fn installed() -> TokenStream {
    let runtime = runtime(Span::mixed_site());
    ours!(let tallygate_limiter = #runtime::Limiter::installed();)
}

/// Returns the value that carries the rejection back.
///
/// All of it is at the return type: one that cannot carry a rejection is underlined, from its first to its last token.
fn carried(returned: Place) -> TokenStream {
    let runtime = runtime(ours_at(returned.first));
    quote_spanned!(ours_at(returned.last)=> #runtime::FromRejection::from_rejection(tallygate_rejection))
}

/// Borrows an expression of the user's where it is written.
fn borrowed(expression: &impl ToTokens, place: Place) -> TokenStream {
    let reference = quote_spanned!(ours_at(place.first)=> &);
    let parenthesized = quote_spanned!(ours_at(place.last)=> (#expression));
    ours!(#reference #parenthesized)
}

/// A place of the user's for names of ours.
fn ours_at(place: Span) -> Span {
    place.resolved_at(Span::mixed_site())
}
