//! Checks of the function, and of the arguments that templates name.

use syn::ext::IdentExt as _;
use tallygate_rules::nearest;

use crate::diagnostic::{Diagnostics, SpanRange};
use crate::model::Model;
use crate::shape::Function;
use crate::template::{Placeholder, Template};

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

/// Reports a second attribute on the function, which has the same default name, so that both share their tallies.
pub(super) fn check_only_attribute(model: &Model, function: &Function, diagnostics: &mut Diagnostics) {
    let named = model.name.is_some() || model.policy.is_some();
    if !named && function.has_attribute("rate_limit") {
        diagnostics.report(
            SpanRange::call_site(),
            "two `#[rate_limit]` on one function need a `name` each; add one here, or combine the two",
        );
    }
}

/// Reports a key that names an argument without braces, so that it is the same for all calls.
pub(super) fn check_key_has_braces(key: &Template, function: &Function, diagnostics: &mut Diagnostics) {
    if key.placeholders().next().is_some() {
        return;
    }
    let of_a_path = |c: char| c.is_alphanumeric() || "_.()".contains(c);
    let paths = key.text.split(|c| !of_a_path(c)).map(|path| path.trim_matches('.'));
    let names_argument = |path: &&str| path.split('.').next().is_some_and(|root| function.binding(root).is_some());
    if let Some(path) = paths.into_iter().find(names_argument) {
        let message = format!(
            "`{path}` without braces is fixed text, so this `key` is the same for all calls; write `{{{path}}}`, or a \
             text that names no argument"
        );
        diagnostics.report(key.span, message);
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

fn unnamed(placeholder: &Placeholder, template: &Template, function: &Function) -> String {
    let Placeholder { text, root, .. } = placeholder;
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
