//! What the compiler shows for each mistake is the text that lies beside its case.
//!
//! Errors that the attribute itself reports (`fail/`) are all rendered without a compiler, by the tests of
//! `tallygate-macros`. Compiled are those that only the compiler can find (`compiler/`), and samples of the others.

mod body_errors;

use std::env;

use trybuild::TestCases;

/// One case of each way in which an error reaches the user. They are compiled in every run.
const SHORT: [&str; 9] = [
    "compiler/body_of_a_wrong_type",
    "compiler/limiter_of_another_type",
    "compiler/placeholder_not_display",
    "compiler/placeholder_unknown_field",
    "compiler/return_type_plain",
    "compiler/skip_if_of_no_argument",
    "compiler/until_of_a_type_without_a_body",
    "fail/many_mistakes",
    "fail/no_rule",
];

/// Errors of the attribute: at least one of each argument and of each stage of the pipeline.
const FAMILIES: [&str; 43] = [
    "allow_zero_cost_without_a_cost",
    "argument_repeated",
    "argument_without_name",
    "ban_with_two_mistakes",
    "check_fn_text",
    "concurrency_lease_missing",
    "cost_above_a_count",
    "crate_text",
    "filter_misspelt",
    "function_const",
    "item_not_a_function",
    "key_expression",
    "key_without_braces",
    "limiter_created_by_each_call",
    "many_mistakes",
    "many_mistakes_beside_the_rules",
    "message_retry_after_without_at",
    "mistake_beside_a_check_fn_that_is_called",
    "name_empty",
    "no_rule",
    "placeholder_misspelt",
    "placeholder_unclosed",
    "policy_beside_rules",
    "prevent_duplicate_with_value",
    "reject_not_a_function",
    "rule_argument_without_comma",
    "rule_cron_out_of_range",
    "rule_per_without_unit",
    "rule_that_never_binds",
    "shadow_of_concurrency",
    "shadow_of_duplicates",
    "shadow_of_rule_with_a_value",
    "shadow_rule_that_never_binds",
    "shadow_rules_of_one_window",
    "shadow_with_a_value",
    "shape_async_trait_with_a_misspelt_placeholder",
    "shape_impl_block",
    "subject_without_a_key",
    "two_attributes_without_names",
    "unit_name_with_spaces",
    "unit_undeclared",
    "until_misspelt",
    "wait_in_shadow",
];

#[test]
fn the_compiler_shows_the_expected_errors() {
    let cases = TestCases::new();
    if env::var_os("TALLYGATE_TEST_LONG").is_some_and(|long| long == "1") {
        cases.compile_fail("compiler/*.rs");
        cases.compile_fail("plain/*.rs");
        for case in FAMILIES {
            cases.compile_fail(format!("fail/{case}.rs"));
        }
    } else {
        for case in SHORT {
            cases.compile_fail(format!("{case}.rs"));
        }
    }
}
