//! Limits that are no `rule(...)`: of concurrent calls, and of duplicates.

use quote::quote;

use super::expansion;

#[test]
fn concurrent_calls_are_limited_behind_the_rules() {
    let attribute = quote! {
        key = "{user}",
        concurrency(limit = 3, lease = "30s", message = "{@count} exports at once are enough"),
        concurrency(limit = plan.exports(), lease = "1m", key = "{plan.tenant}", name = "exports"),
        prevent_duplicate,
        rule(count = 10, per = "60s"),
        rule(count = 100, per = "60s", key = "{plan.tenant}"),
    };
    let item = quote! {
        /// Exports.
        async fn export(user: &str, plan: &Plan) -> Result<(), Rejection> { Ok(()) }
    };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn released_duplicates_have_a_tally_of_their_own_beside_rules_of_their_key() {
    let attribute = quote! {
        prevent_duplicate(key = "{phone}", release_if = Result::is_err),
        rule(count = 10, per = "60s", key = "{phone}"),
    };
    let item = quote! { async fn send_code(phone: &str) -> Result<(), Rejection> { Ok(()) } };
    insta::assert_snapshot!(expansion(attribute, &item));
}
