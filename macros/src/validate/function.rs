//! Checks of the function, and of the arguments that templates name.

use syn::ext::IdentExt as _;
use tallygate_rules::{TemplateUse, nearest};

use crate::diagnostic::{Diagnostics, SpanRange};
use crate::model::Model;
use crate::shape::Function;
use crate::template::{Template, TemplateValue};

/// Reports a function that cannot wait for the decision.
pub(super) fn check_async(function: &Function, diagnostics: &mut Diagnostics) {
    let name = &function.signature.ident;
    if let Some(span) = function.early_return() {
        diagnostics.report(span, "this `return` skips the limit; move it into the async block at the end");
    }
    if function.can_await() {
        return;
    }
    let message = if function.returns_future() {
        format!(
            "`{name}` has no async block to check the limit in; end it with `async move {{ … }}` or \
             `Box::pin(async move {{ … }})`, or write `async fn {name}`"
        )
    } else {
        format!(
            "`{name}` must be async to wait for the decision; write `async fn {name}`, or check the limit in an async \
             function that calls it: `limiter.check(&policy, &subject).await`"
        )
    };
    diagnostics.report(function.signature.fn_token.span, message);
}

/// Reports fixed text that was meant to show a value.
pub(super) fn check_fixed_text(template: &Template, function: &Function, diagnostics: &mut Diagnostics) {
    check_text(template.template_use(), &template.text, template.span, function, diagnostics);
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

/// Reports a key of all arguments where there are none.
pub(super) fn check_no_arguments(key: &Template, diagnostics: &mut Diagnostics) {
    if key.shows_all() {
        let message = "`{*}` stands for all arguments, and this function has none with a name; remove it, or name them";
        diagnostics.report(key.span, message);
    }
}

/// Reports a key of all arguments where a part of them has no name.
pub(super) fn check_all_named(key: &Template, function: &Function, diagnostics: &mut Diagnostics) {
    if key.shows_all() && function.has_nameless() {
        let message = "`{*}` stands for all arguments, and leaves out what is `_` or `..` here; give it a name, like \
                       `_order`, or name what the key shows, like `{phone}`";
        diagnostics.report(key.span, message);
    }
}

/// Reports every placeholder that names no argument.
pub(super) fn check_placeholders_named(template: &Template, function: &Function, diagnostics: &mut Diagnostics) {
    for placeholder in template.placeholders().filter(|placeholder| !placeholder.is_of_context()) {
        if function.binding(&placeholder.root).is_none() {
            diagnostics.report(template.span, unnamed(placeholder, template, function));
        }
    }
}

fn unnamed(placeholder: &TemplateValue, template: &Template, function: &Function) -> String {
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
        None if function.has_nameless() => {
            format!("an argument, or a part of one, is `_` or `..`, which bind no name; write `{root}` in its place")
        }
        None if function.signature.inputs.is_empty() => "this function has no arguments".to_owned(),
        None if names.is_empty() => "this function's arguments have no names".to_owned(),
        None => format!("the function takes `{}`", names.join("`, `")),
    };
    format!("placeholder `{{{text}}}` names no argument; {remedy}")
}
