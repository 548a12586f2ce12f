//! The checks of a model before it is expanded. Each function is one check.

mod call;
mod effect;
mod function;
mod policy;
mod text;
mod unit;

use crate::diagnostic::Diagnostics;
use crate::model::Model;
use crate::shape::Function;

pub(crate) fn check(model: &Model, diagnostics: &mut Diagnostics) {
    if model.policy.is_some() {
        policy::check_beside_policy(model, diagnostics);
    } else {
        policy::check_rules(model, diagnostics);
        policy::check_key_used(model, diagnostics);
        policy::check_duplicate_keyed(model, diagnostics);
        policy::check_released(model, diagnostics);
    }
    policy::check_ban(model, diagnostics);
    policy::check_deadline(model, diagnostics);
    policy::check_warn_at(model, diagnostics);
    policy::check_prefetch(model, diagnostics);
    policy::check_pause(model, diagnostics);
    policy::check_pause_key(model, diagnostics);
    call::check_cost(model, diagnostics);
    unit::check_units(model, diagnostics);
    call::check_wait(model, diagnostics);
    call::check_refund_counted(model, diagnostics);
    call::check_refund_subject(model, diagnostics);
    call::check_settle(model, diagnostics);
    call::check_limiter(model, diagnostics);
    call::check_settled_before_body(model, diagnostics);
    call::check_until_lasts(model, diagnostics);
    effect::check_skip(model, diagnostics);
    effect::check_results_used(model, diagnostics);
    effect::check_cost_counted(model, diagnostics);
    effect::check_counts_limit(model, diagnostics);
    text::check_names(model, diagnostics);
    text::check_keys(model, diagnostics);
    text::check_subjects(model, diagnostics);
    for key in model.keys() {
        text::check_placeholders_separated(key, diagnostics);
    }
    text::check_messages(model, diagnostics);
    text::check_windows_shown(model, diagnostics);
}

/// Reports `{*}` in keys of a function without arguments, or with an argument that has no name.
pub(crate) fn check_all_arguments(model: &Model, function: &Function, diagnostics: &mut Diagnostics) {
    for key in model.keys() {
        function::check_all_arguments(key, function, diagnostics);
    }
}

pub(crate) fn check_function(model: &Model, function: &Function, diagnostics: &mut Diagnostics) {
    function::check_shape(function, diagnostics);
    function::check_second_attribute(model, function, diagnostics);
    function::check_companion(model, function, diagnostics);
    function::check_openapi(model, function, diagnostics);
    call::check_until_async(model, function, diagnostics);
    for key in model.keys() {
        function::check_fixed_text(key, function, diagnostics);
        function::check_placeholders_named(key, function, diagnostics);
    }
    function::check_names(model, function, diagnostics);
    for (_, message) in model.messages() {
        function::check_fixed_text(message, function, diagnostics);
        function::check_placeholders_named(message, function, diagnostics);
    }
}
