//! The check of a second attribute on the function, which must not share tallies with this one by mistake.

use quote::ToTokens as _;
use syn::Expr;

use crate::diagnostic::{Diagnostics, SpanRange, Spanned};
use crate::model::Model;
use crate::shape::Function;

/// Reports the attributes behind this one that would count every call a second time in the same tallies.
pub(super) fn check(model: &Model, function: &Function, diagnostics: &mut Diagnostics) {
    for second in function.attributes_named("rate_limit") {
        // Its own expansion reports its mistakes.
        let second = Model::read(second, &mut Diagnostics::default());
        if let (Some(policy), Some(other)) = (&model.policy, &second.policy) {
            check_policy(model, policy, &second, other, diagnostics);
        } else if let Some(name) = &model.name {
            check_name(name, &second, diagnostics);
        } else if model.policy.is_none() {
            let message = "two `#[rate_limit]` on one function need a `name` each; add one here, or combine the two";
            diagnostics.report(SpanRange::call_site(), message);
            return;
        }
    }
}

fn check_name(name: &Spanned<String>, second: &Model, diagnostics: &mut Diagnostics) {
    if second.name.as_ref().is_some_and(|other| other.value == name.value) {
        let message = format!(
            "two `#[rate_limit]` on this function have the `name` {:?}, so they would share their tallies; rename one, or \
             combine the two",
            name.value
        );
        diagnostics.report(name.span, message);
    }
}

/// Two subjects of one policy differ by their keys.
fn check_policy(model: &Model, policy: &Expr, second: &Model, other: &Expr, diagnostics: &mut Diagnostics) {
    let is_same_policy = policy.to_token_stream().to_string() == other.to_token_stream().to_string();
    let key = model.key.as_ref().map(|key| key.text.clone());
    if is_same_policy && key == second.key.as_ref().map(|key| key.text.clone()) {
        let message = "two `#[rate_limit]` on this function count each call in the same tallies of this `policy`; remove \
                       one, or give them different keys";
        diagnostics.report(SpanRange::of_tokens(policy), message);
    }
}
