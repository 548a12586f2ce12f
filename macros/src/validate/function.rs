//! Checks of the function, of what its attributes generate beside it, and of the arguments that templates name.

use quote::ToTokens as _;
use syn::Expr;
use syn::ext::IdentExt as _;
use tallygate_rules::{TemplateUse, nearest};

use crate::diagnostic::{Diagnostics, SpanRange, Spanned};
use crate::model::Model;
use crate::shape::Function;
use crate::template::{SpannedTemplate, TemplateValue};

/// Reports a function that would run without its limit, or when nothing can be decided.
pub(super) fn check_shape(function: &Function, diagnostics: &mut Diagnostics) {
    let name = &function.signature.ident;
    if let Some(span) = function.early_return() {
        diagnostics.report(span, "this `return` skips the limit; move it into the async block at the end");
    }
    if let Some(constness) = &function.signature.constness {
        diagnostics
            .report(constness.span, "a `const fn` can run in the compiler, where nothing is limited; remove `const`");
    }
    if function.is_blocking() && function.returns_future() {
        let message = format!(
            "`{name}` has no async block to check the limit in; end it with `async move {{ … }}` or \
             `Box::pin(async move {{ … }})`, or write `async fn {name}`"
        );
        diagnostics.report(function.signature.fn_token.span, message);
    }
}

/// Reports fixed text that was meant to show a value.
pub(super) fn check_fixed_text(template: &SpannedTemplate, function: &Function, diagnostics: &mut Diagnostics) {
    check_text(template.template_use, &template.text, template.span, function, diagnostics);
}

/// Reports names that were meant to show a value.
pub(super) fn check_names(model: &Model, function: &Function, diagnostics: &mut Diagnostics) {
    for (name, span) in model.names() {
        check_text(TemplateUse::Name, name, span, function, diagnostics);
    }
}

fn check_text(
    template_use: TemplateUse,
    text: &str,
    span: SpanRange,
    function: &Function,
    diagnostics: &mut Diagnostics,
) {
    if let Err(mistake) = template_use.check_fixed_text(text, |name| function.binding(name).is_some()) {
        diagnostics.report(span, mistake);
    }
}

/// Reports `{*}` of a function without arguments, or with an argument that has no name.
pub(super) fn check_all_arguments(key: &SpannedTemplate, function: &Function, diagnostics: &mut Diagnostics) {
    if !key.shows_all_arguments() {
        return;
    }
    if function.argument_names().is_empty() {
        let message = "`{*}` stands for all arguments, and this function has none with a name; remove it, or name them";
        diagnostics.report(key.span, message);
    } else if function.has_unnamed_part() {
        let message = "`{*}` stands for all arguments, and leaves out what is `_` or `..` here; give it a name, like \
                       `_order`, or name what the key shows, like `{phone}`";
        diagnostics.report(key.span, message);
    }
}

/// Reports every placeholder that names no argument.
pub(super) fn check_placeholders_named(template: &SpannedTemplate, function: &Function, diagnostics: &mut Diagnostics) {
    for placeholder in template.placeholders().filter(|placeholder| !placeholder.is_in_context()) {
        if function.binding(&placeholder.root).is_none() {
            diagnostics.report(template.span, unnamed(placeholder, template, function));
        }
    }
}

fn unnamed(placeholder: &TemplateValue, template: &SpannedTemplate, function: &Function) -> String {
    let TemplateValue { text, root, .. } = placeholder;
    if root == "self" {
        return format!("placeholder `{{{text}}}` needs a method; this function takes no `self`");
    }
    let names: Vec<_> = function.bindings().iter().map(|binding| binding.name.unraw().to_string()).collect();
    if template.has_rejection_field(root) {
        return format!("placeholder `{{{text}}}` names no argument; did you mean `{{@{root}}}`?");
    }
    let remedy = match nearest(root, names.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{{{}}}`?", text.replacen(root, meant, 1)),
        None if function.has_unnamed_part() => {
            format!("an argument, or a part of one, is `_` or `..`, which bind no name; write `{root}` in its place")
        }
        None if function.signature.inputs.is_empty() => "this function has no arguments".to_owned(),
        None if names.is_empty() => "this function's arguments have no names".to_owned(),
        None => format!("the function takes `{}`", names.join("`, `")),
    };
    format!("placeholder `{{{text}}}` names no argument; {remedy}")
}

/// Reports later attributes that would count every call a second time in the same tallies.
pub(super) fn check_second_attribute(model: &Model, function: &Function, diagnostics: &mut Diagnostics) {
    for second in function.attributes_named("rate_limit") {
        // The expansion of the second attribute reports its mistakes.
        let second = Model::read(second, &mut Diagnostics::default());
        if let (Some(policy), Some(other)) = (&model.policy, &second.policy) {
            check_second_policy(model, policy, &second, other, diagnostics);
        } else if let Some(name) = &model.name {
            check_second_name(name, &second, diagnostics);
        } else if model.policy.is_none() {
            let message = "two `#[rate_limit]` on one function need a `name` each; add one here, or combine the two";
            diagnostics.report(SpanRange::call_site(), message);
            return;
        }
    }
}

fn check_second_name(name: &Spanned<String>, second: &Model, diagnostics: &mut Diagnostics) {
    if second.name.as_ref().is_some_and(|other| other.value == name.value) {
        let message = format!(
            "two `#[rate_limit]` on this function have the `name` {:?}, so they would share their tallies; rename one, or \
             combine the two",
            name.value
        );
        diagnostics.report(name.span, message);
    }
}

/// Two attributes may name one policy if their keys make two subjects.
fn check_second_policy(model: &Model, policy: &Expr, second: &Model, other: &Expr, diagnostics: &mut Diagnostics) {
    let is_same_policy = policy.to_token_stream().to_string() == other.to_token_stream().to_string();
    let key = model.key.as_ref().map(|key| key.text.clone());
    if is_same_policy && key == second.key.as_ref().map(|key| key.text.clone()) {
        let message = "two `#[rate_limit]` on this function count each call in the same tallies of this `policy`; remove \
                       one, or give them different keys";
        diagnostics.report(SpanRange::of_tokens(policy), message);
    }
}

pub(super) fn check_companion(model: &Model, function: &Function, diagnostics: &mut Diagnostics) {
    let name = &function.signature.ident;
    if let Some(check_fn) = model.check_fn.as_ref().filter(|check_fn| *check_fn == name) {
        let message =
            format!("`check_fn` names a second function; choose another name, like `check_fn = {name}_limit`");
        diagnostics.report(check_fn.span(), message);
    }
}

/// Reports `openapi` if no type can be generated, or if the runtime lacks a feature for it.
pub(super) fn check_openapi(model: &Model, function: &Function, diagnostics: &mut Diagnostics) {
    let Some(name) = &model.openapi else { return };
    if function.signature.receiver().is_some() {
        let message = "`openapi` works on free functions; put the attribute on the handler that calls this method";
        diagnostics.report(name.span(), message);
    } else if !cfg!(feature = "openapi") {
        let message =
            "`openapi` needs the feature `utoipa` of tallygate; add it in Cargo.toml, like `features = [\"utoipa\"]`";
        diagnostics.report(name.span(), message);
    }
}
