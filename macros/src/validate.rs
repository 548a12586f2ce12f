//! The checks that a model passes before it is expanded: one function, one check.

use syn::PatWild;
use syn::ext::IdentExt as _;
use syn::visit::Visit;
use tallygate_rules::{Rule, RuleError};

use crate::diagnostic::{Mistakes, Place, nearest};
use crate::model::Model;
use crate::placeholder::Placeholder;
use crate::rule::RuleModel;
use crate::shape::Function;
use crate::template::{Part, Template, keeps_apart};

/// Reports what is wrong with the model by itself.
pub(crate) fn check(model: &Model, mistakes: &mut Mistakes) {
    check_rules(model, mistakes);
    check_name(model, mistakes);
    check_key(model, mistakes);
    if let Some(key) = &model.key {
        check_placeholders_apart(key, mistakes);
    }
    check_messages(model, mistakes);
}

/// Reports what is wrong with the function, and with the model of it.
pub(crate) fn check_function(model: &Model, function: &Function, mistakes: &mut Mistakes) {
    check_async(function, mistakes);
    check_alone(model, function, mistakes);
    for template in model.key.iter().chain(model.messages().map(|(_, message)| message)) {
        check_placeholders_named(template, function, mistakes);
    }
}

/// Reports every mistake in the rules, also in what could be read of a rule that could not be read as a whole.
fn check_rules(model: &Model, mistakes: &mut Mistakes) {
    let (whole, parts): (Vec<_>, Vec<_>) = model.rules.iter().partition(|rule| rule.complete);
    if !whole.is_empty() || (parts.is_empty() && model.complete) {
        check_together(&whole, mistakes);
    }
    for part in parts {
        check_together(&[part], mistakes);
    }
}

fn check_together(models: &[&RuleModel], mistakes: &mut Mistakes) {
    let rules: Vec<Rule> = models.iter().map(|model| model.rule.clone()).collect();
    for mistake in tallygate_rules::validate(&rules).err().into_iter().flatten() {
        mistakes.report(place_of(&mistake, models), &mistake);
    }
}

fn place_of(mistake: &RuleError, models: &[&RuleModel]) -> Place {
    let Some(rule) = mistake.rule().and_then(|index| models.get(index)) else {
        return Place::attribute();
    };
    rule.place_of(mistake.field())
}

/// Reports a name without letters.
fn check_name(model: &Model, mistakes: &mut Mistakes) {
    if let Some(name) = model.name.as_ref().filter(|name| name.value.is_empty()) {
        mistakes.report(name.place, "`name` must not be empty; leave it out to be named by module and function");
    }
}

/// Reports a second attribute on the function, which would take the same name and so mix up the tallies of both.
fn check_alone(model: &Model, function: &Function, mistakes: &mut Mistakes) {
    if model.name.is_none() && function.has_attribute("rate_limit") {
        mistakes.report(
            Place::attribute(),
            "two `#[rate_limit]` of one function need a `name` each; name this one, or put the rules of both into one",
        );
    }
}

/// Reports a key without text.
fn check_key(model: &Model, mistakes: &mut Mistakes) {
    if let Some(key) = model.key.as_ref().filter(|key| key.parts.is_empty()) {
        mistakes.report(key.place, "`key` must not be empty; leave it out for one tally of the whole function");
    }
}

/// Reports every message without text.
fn check_messages(model: &Model, mistakes: &mut Mistakes) {
    for (_, empty) in model.messages().filter(|(_, message)| message.parts.is_empty()) {
        mistakes.report(empty.place, "`message` must not be empty; leave it out for the usual text");
    }
}

/// Reports every placeholder that names no argument.
fn check_placeholders_named(template: &Template, function: &Function, mistakes: &mut Mistakes) {
    for placeholder in template.placeholders() {
        if function.binding(&placeholder.root).is_none() {
            mistakes.report(template.place, unnamed(placeholder, function));
        }
    }
}

fn unnamed(placeholder: &Placeholder, function: &Function) -> String {
    let Placeholder { text, root, .. } = placeholder;
    if root == "self" {
        return format!("placeholder `{{{text}}}` needs a method; this function takes no `self`");
    }
    let names: Vec<_> = function.bindings().iter().map(|binding| binding.unraw().to_string()).collect();
    let remedy = match nearest(root, names.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{{{}}}`?", text.replacen(root, meant, 1)),
        None if has_nameless(function) => {
            format!("an argument is `_`, which binds no name; write `{root}` in its place")
        }
        None if names.is_empty() => "this function's arguments have no names".to_owned(),
        None => format!("there are `{}`", names.join("`, `")),
    };
    format!("placeholder `{{{text}}}` names no argument; {remedy}")
}

/// Whether an argument, or a part of one, is `_`.
fn has_nameless(function: &Function) -> bool {
    let mut wild = Wild(false);
    wild.visit_signature(&function.signature);
    wild.0
}

struct Wild(bool);

impl Visit<'_> for Wild {
    fn visit_pat_wild(&mut self, _: &PatWild) {
        self.0 = true;
    }
}

/// Reports two placeholders whose values could run into each other.
fn check_placeholders_apart(template: &Template, mistakes: &mut Mistakes) {
    let mut open: Option<&Placeholder> = None;
    for part in &template.parts {
        match part {
            Part::Text(text) if keeps_apart(text) => open = None,
            Part::Text(_) | Part::Told(_) => {}
            Part::Value(value) => {
                if let Some(before) = open.replace(value) {
                    mistakes.report(template.place, touching(before, value));
                }
            }
        }
    }
}

fn touching(before: &Placeholder, behind: &Placeholder) -> String {
    let (before, behind) = (&before.text, &behind.text);
    format!(
        "different values of `{{{before}}}` and `{{{behind}}}` could make the same key; \
         put `:` between them, which no value contains: `{{{before}}}:{{{behind}}}`"
    )
}

/// Reports a function that cannot wait for the limiter's answer.
fn check_async(function: &Function, mistakes: &mut Mistakes) {
    let name = &function.signature.ident;
    if let Some(place) = function.early_return() {
        mistakes.report(place, "this `return` would pass the limit by; move it into the async block at the end");
    }
    if function.can_wait() {
        return;
    }
    let message = if function.returns_future() {
        format!(
            "`{name}` has no async block to check the limit in; end it with `async move {{ … }}` or \
             `Box::pin(async move {{ … }})`, or write `async fn {name}`"
        )
    } else {
        format!(
            "`{name}` must be async to wait for the limiter's answer; write `async fn {name}`, \
             or ask by hand where you can wait: `limiter.check(&policy, &subject).await`"
        )
    };
    mistakes.report(function.signature.fn_token.span, message);
}
