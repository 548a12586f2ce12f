//! The checks that a model passes before it is expanded: one function, one check.

use syn::PatWild;
use syn::ext::IdentExt as _;
use syn::visit::Visit;
use tallygate_rules::{Role, Rule, RuleError};

use crate::attr::Amount;
use crate::diagnostic::{Mistakes, Place, nearest};
use crate::limiter::is_made_anew;
use crate::model::Model;
use crate::placeholder::Placeholder;
use crate::rule::{RuleModel, number};
use crate::shape::Function;
use crate::template::{Part, Template, keeps_apart};

/// Reports what is wrong with the model by itself.
pub(crate) fn check(model: &Model, mistakes: &mut Mistakes) {
    if model.policy.is_some() {
        check_policy_alone(model, mistakes);
    } else {
        check_rules(model, mistakes);
        check_key_used(model, mistakes);
    }
    check_ban(model, mistakes);
    check_cost(model, mistakes);
    check_wait(model, mistakes);
    check_limiter(model, mistakes);
    check_name(model, mistakes);
    check_keys(model, mistakes);
    for key in model.keys() {
        check_placeholders_apart(key, mistakes);
    }
    check_messages(model, mistakes);
}

/// Reports what is wrong with the function, and with the model of it.
pub(crate) fn check_function(model: &Model, function: &Function, mistakes: &mut Mistakes) {
    check_async(function, mistakes);
    check_alone(model, function, mistakes);
    for key in model.keys() {
        check_key_counts_apart(key, function, mistakes);
        check_placeholders_named(key, function, mistakes);
    }
    for (_, message) in model.messages() {
        check_placeholders_named(message, function, mistakes);
    }
}

/// Reports every mistake in the rules, also in what could be read of a rule that could not be read as a whole.
fn check_rules(model: &Model, mistakes: &mut Mistakes) {
    let (whole, parts): (Vec<_>, Vec<_>) = model.rules.iter().partition(|rule| rule.complete);
    if !whole.is_empty() || (parts.is_empty() && model.complete) {
        check_together(model, &whole, mistakes);
    }
    for part in parts {
        check_together(model, &[part], mistakes);
    }
}

fn check_together(model: &Model, models: &[&RuleModel], mistakes: &mut Mistakes) {
    let rules: Vec<(_, Rule)> = models.iter().map(|rule| (model.label(rule), rule.rule.clone())).collect();
    for mistake in tallygate_rules::validate_by_subject(&rules).err().into_iter().flatten() {
        mistakes.report(place_of(&mistake, models), &mistake);
    }
}

fn place_of(mistake: &RuleError, models: &[&RuleModel]) -> Place {
    let Some(rule) = mistake.rule().and_then(|index| models.get(index)) else {
        return Place::attribute();
    };
    rule.place_of(mistake.field())
}

/// Reports what would say again what a policy that is built elsewhere says.
fn check_policy_alone(model: &Model, mistakes: &mut Mistakes) {
    let named = model.name.iter().map(|name| ("name", name.place));
    let rules = model.rules.iter().map(|rule| match rule.rule.role() {
        Role::Duplicate => ("prevent_duplicate", rule.place),
        _ => ("rule", rule.place),
    });
    let ban = model.ban.iter().map(|ban| ("ban", ban.place));
    for (argument, place) in named.chain(rules).chain(ban) {
        let message =
            format!("`{argument}` is the policy's to say; give it to the one that `policy` names, or remove it");
        mistakes.report(place, message);
    }
}

/// Reports a key that no rule goes by, as all have keys of their own.
fn check_key_used(model: &Model, mistakes: &mut Mistakes) {
    let own = !model.rules.is_empty() && model.rules.iter().all(|rule| model.label(rule).is_some());
    if let Some(key) = model.key.as_ref().filter(|_| own && model.ban.is_none()) {
        mistakes.report(key.place, "no rule counts this `key`, as each has one of its own; remove it, or one of those");
    }
}

/// Reports every mistake in the ban, and one that would be of everybody where the rules tell callers apart.
fn check_ban(model: &Model, mistakes: &mut Mistakes) {
    let Some(ban) = &model.ban else { return };
    for mistake in ban.ban.validate().err().into_iter().flatten() {
        mistakes.report(ban.place_of(mistake.field()), &mistake);
    }
    let apart = model.rules.iter().any(|rule| rule.key.is_some());
    if apart && !model.keyed {
        mistakes.report(
            ban.place,
            "`ban` goes by the policy's `key`, and without one it would ban all callers at once; write whom to ban, \
             like `key = \"{user}\"`, beside it",
        );
    }
}

/// Reports a cost that no call can pay, or that counts nothing.
fn check_cost(model: &Model, mistakes: &mut Mistakes) {
    let Some(Amount::Literal(literal)) = &model.cost else { return };
    let (cost, place) = (number(literal), Place::from(literal.span()));
    if cost == 0 {
        mistakes
            .report(place, "`cost` must be at least 1, like `cost = 3`; to leave calls out, say which by `skip_if`");
    }
    let known = model.rules.iter().filter(|rule| rule.complete && rule.count.is_none());
    let strictest = known.map(|rule| &rule.rule).min_by_key(|rule| rule.greatest_cost());
    if let Some(rule) = strictest.filter(|rule| cost > rule.greatest_cost()) {
        let (greatest, rule) = (rule.greatest_cost(), rule.to_string().replace('`', ""));
        let message =
            format!("no call of this `cost` is ever admitted: `{rule}` admits at most {greatest} at once; lower it");
        mistakes.report(place, message);
    }
}

/// Reports a wait that is none, or that nothing waits for.
fn check_wait(model: &Model, mistakes: &mut Mistakes) {
    let Some(wait) = &model.wait else { return };
    if wait.value.is_zero() {
        mistakes.report(wait.place, "`wait` must be longer than zero, like `wait = \"2s\"`; without it, no call waits");
    }
    if model.shadow.is_some() {
        let message = "`wait` and `shadow` exclude each other: a call that runs in any case has nothing to wait for; \
                       remove one";
        mistakes.report(wait.place, message);
    }
}

/// Reports a limiter that no two calls share.
fn check_limiter(model: &Model, mistakes: &mut Mistakes) {
    if let Some(limiter) = model.limiter.as_ref().filter(|limiter| is_made_anew(limiter)) {
        let message = "each call would make a limiter of its own, which has counted nothing; make one and keep it, like \
                       `limiter = self.limiter`";
        mistakes.report(Place::of(limiter), message);
    }
}

/// Reports a name without letters.
fn check_name(model: &Model, mistakes: &mut Mistakes) {
    if let Some(name) = model.name.as_ref().filter(|name| name.value.is_empty()) {
        mistakes.report(name.place, "`name` must not be empty; leave it out to be named by module and function");
    }
}

/// Reports a second attribute on the function, which would take the same name and so mix up the tallies of both.
fn check_alone(model: &Model, function: &Function, mistakes: &mut Mistakes) {
    let named = model.name.is_some() || model.policy.is_some();
    if !named && function.has_attribute("rate_limit") {
        mistakes.report(
            Place::attribute(),
            "two `#[rate_limit]` of one function need a `name` each; name this one, or put the rules of both into one",
        );
    }
}

/// Reports every key without text.
fn check_keys(model: &Model, mistakes: &mut Mistakes) {
    let is_empty = |key: &&Template| key.parts.is_empty();
    if let Some(key) = model.key.as_ref().filter(is_empty) {
        mistakes.report(key.place, "`key` must not be empty; leave it out for one tally of the whole function");
    }
    for key in model.rules.iter().filter_map(|rule| rule.key.as_ref()).filter(is_empty) {
        let message = "`key` must not be empty; to count all calls together, write any text, like `key = \"all\"`";
        mistakes.report(key.place, message);
    }
}

/// Reports every message without text.
fn check_messages(model: &Model, mistakes: &mut Mistakes) {
    for (_, empty) in model.messages().filter(|(_, message)| message.parts.is_empty()) {
        mistakes.report(empty.place, "`message` must not be empty; leave it out for the usual text");
    }
}

/// Reports a key that names an argument and puts in none, so that it is the same for all calls.
fn check_key_counts_apart(key: &Template, function: &Function, mistakes: &mut Mistakes) {
    if key.placeholders().next().is_some() {
        return;
    }
    let of_a_path = |c: char| c.is_alphanumeric() || "_.()".contains(c);
    let paths = key.text.split(|c| !of_a_path(c)).map(|path| path.trim_matches('.'));
    let names_argument = |path: &&str| path.split('.').next().is_some_and(|root| function.binding(root).is_some());
    if let Some(path) = paths.into_iter().find(names_argument) {
        let message = format!(
            "`{path}` without braces is text, which makes this `key` the same for all calls; write `{{{path}}}`, or another text"
        );
        mistakes.report(key.place, message);
    }
}

/// Reports every placeholder that names no argument.
fn check_placeholders_named(template: &Template, function: &Function, mistakes: &mut Mistakes) {
    for placeholder in template.placeholders() {
        if function.binding(&placeholder.root).is_none() {
            mistakes.report(template.place, unnamed(placeholder, template, function));
        }
    }
}

fn unnamed(placeholder: &Placeholder, template: &Template, function: &Function) -> String {
    let Placeholder { text, root, .. } = placeholder;
    if root == "self" {
        return format!("placeholder `{{{text}}}` needs a method; this function takes no `self`");
    }
    let names: Vec<_> = function.bindings().iter().map(|binding| binding.unraw().to_string()).collect();
    if template.can_tell(root) {
        return format!("placeholder `{{{text}}}` names no argument; did you mean `{{@{root}}}`?");
    }
    let remedy = match nearest(root, names.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{{{}}}`?", text.replacen(root, meant, 1)),
        None if has_nameless(function) => {
            format!("an argument is `_`, which binds no name; write `{root}` in its place")
        }
        None if function.signature.inputs.is_empty() => "this function has no arguments".to_owned(),
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
