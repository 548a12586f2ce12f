//! The checks of a model before it is expanded. Each function is one check.

mod call;
mod check_fn;
mod function;
mod limiter;
mod policy;
mod subject;
mod text;

use crate::diagnostic::Mistakes;
use crate::model::Model;
use crate::shape::Function;

/// Reports every mistake in the attribute itself.
pub(crate) fn check(model: &Model, mistakes: &mut Mistakes) {
    if model.policy.is_some() {
        policy::check_beside_policy(model, mistakes);
    } else {
        policy::check_rules(model, mistakes);
        policy::check_key_used(model, mistakes);
        policy::check_duplicate_keyed(model, mistakes);
    }
    policy::check_ban(model, mistakes);
    call::check_cost(model, mistakes);
    call::check_wait(model, mistakes);
    call::check_limiter(model, mistakes);
    text::check_names(model, mistakes);
    text::check_keys(model, mistakes);
    subject::check(model, mistakes);
    for key in model.keys() {
        text::check_placeholders_separated(key, mistakes);
    }
    text::check_messages(model, mistakes);
}

/// Reports every mistake in the function, and in what the attribute says of it.
pub(crate) fn check_function(model: &Model, function: &Function, mistakes: &mut Mistakes) {
    function::check_async(function, mistakes);
    function::check_only_attribute(model, function, mistakes);
    check_fn::check(model, function, mistakes);
    for key in model.keys() {
        function::check_key_has_braces(key, function, mistakes);
        function::check_placeholders_named(key, function, mistakes);
    }
    for (_, message) in model.messages() {
        function::check_placeholders_named(message, function, mistakes);
    }
}
