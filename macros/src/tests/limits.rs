//! Limits without `rule(...)`, on concurrent calls and on duplicates, the responses of handlers, and rules that can
//! never bind.

use quote::quote;

use super::expansion;
use crate::pipeline::limit;

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

#[test]
fn a_handler_may_return_any_response() {
    let item = quote! {
        pub async fn send_code(client: ClientIp) -> impl axum::response::IntoResponse + use<> {
            if is_night() {
                return "good night";
            }
            "sent"
        }
    };
    insta::assert_snapshot!(expansion(quote!(rule(count = 1, per = "60s")), &item));
}

#[test]
fn a_call_that_runs_until_its_body_is_over_leaves_its_permit_to_the_response() {
    let attribute = quote! {
        rule(count = 10, per = "60s"),
        until = "body", concurrency(limit = 2, lease = "30s"),
        refund_if = Result::is_err,
    };
    let item = quote! { async fn export() -> Result<Response, Rejection> { stream() } };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn a_call_may_be_refunded_on_the_main_subject_alone() {
    let attribute = quote! {
        key = "{ip}",
        rule(count = 5, per = "60s"),
        rule(count = 10, per = "60s", key = "{user}"),
        refund_if = Result::is_err,
        refund_key = "{ip}",
    };
    let item = quote! { fn login(user: &str, ip: &str) -> Result<(), Rejection> { check(user) } };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn the_units_of_a_call_are_reserved_and_settled_together() {
    let attribute = quote! {
        key = "{user}",
        rule(count = 60, per = "60s"),
        rule(count = user.tokens(), per = "60s", unit = "tokens"),
        rule(count = 1000000, per = "1d", unit = "bytes", key = "all"),
        unit("tokens", cost = request.max_tokens, settle = |reply| reply.tokens()),
        unit("bytes", settle = Reply::bytes),
        cost = 2,
        settle = Reply::calls,
    };
    let item = quote! {
        /// Answers.
        async fn chat(user: &User, request: Request) -> Reply { answer(request).await }
    };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn a_call_that_meters_units_runs_its_body_so_that_it_finds_them() {
    let attribute = quote! {
        rule(count = 20000, per = "60s", unit = "tokens"),
        rule(count = 1000000, per = "1d", unit = "bytes"),
        unit("tokens", cost = request.max_tokens, settle = metered),
        unit("bytes", settle = Reply::bytes),
    };
    let item = quote! { async fn chat(request: Request) -> Reply { answer(request).await } };
    let function = expansion(attribute.clone(), &item);
    let plain = expansion(attribute, &quote! { fn chat(request: Request) -> Reply { answer(request) } });
    insta::assert_snapshot!(format!("{function}\n{plain}"));
}

#[test]
fn what_is_metered_until_the_body_is_over_is_settled_with_the_response() {
    let attribute = quote! {
        rule(count = 20000, per = "60s", unit = "tokens"),
        unit("tokens", settle = metered),
        until = "body",
    };
    let item = quote! { async fn chat(prompt: String) -> impl IntoResponse { stream(prompt) } };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn a_response_of_any_type_in_a_result_holds_the_permit_beside_it_and_a_rejection_holds_none() {
    let attribute = quote! { until = "body", concurrency(limit = 2, lease = "30s"), reject = Err };
    let item = quote! { async fn export() -> axum::response::Result<impl IntoResponse, Rejection> { stream() } };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[cfg(feature = "openapi")]
#[test]
fn a_handler_has_its_responses_in_documents() {
    let attribute = quote! {
        key = "{@ip}",
        rule(count = 5, per = "60s"),
        rule(count = 1000, per = "60s", key = "all"),
        prevent_duplicate,
        ban(denials = 20, within = "10m", duration = "1h"),
        openapi = SendCodeLimits,
    };
    let item = quote! { pub(crate) async fn send_code() -> Result<(), Rejection> { Ok(()) } };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[cfg(not(feature = "openapi"))]
#[test]
fn responses_in_documents_without_their_feature_say_which_it_is() {
    let item = quote! { async fn draw() -> Result<(), Rejection> { Ok(()) } };
    let expanded = limit(quote!(rule(count = 10, per = "60s"), openapi = DrawLimits), &item).to_string();
    assert!(expanded.contains("`openapi` needs the feature `utoipa` of tallygate"), "{expanded}");
    assert_eq!(expanded.matches("compile_error").count(), 1);
}

#[test]
fn a_rule_that_binds_only_after_a_settlement_a_refund_or_a_release_is_no_mistake() {
    let item = quote! { async fn f(a: u32) -> Result<(), Rejection> { Ok(()) } };
    let bucket = quote! { rule(count = 1, per = "1s", algorithm = "token_bucket"), rule(count = 100000, per = "1d") };
    for attribute in [
        quote! { #bucket, cost = a, settle = |_| 9 },
        quote! { #bucket, refund_if = Result::is_err },
        quote! {
            rule(count = 1, per = "60s", key = "all"),
            rule(count = 5, per = "60s", key = "{a}"),
            refund_if = Result::is_err,
            refund_key = "all",
        },
        quote! { key = "{a}", rule(count = 20, per = "60s"), prevent_duplicate(release_if = Result::is_err) },
    ] {
        assert!(!expansion(attribute, &item).contains("compile_error"));
    }
    assert!(expansion(bucket, &item).contains("compile_error"));
}

#[test]
fn a_rule_beside_prevent_duplicate_binds_when_a_call_may_cost_more_than_one() {
    let item = quote! { async fn send_codes(items: &[u8]) -> Result<(), Rejection> { Ok(()) } };
    let rules = quote!(prevent_duplicate, rule(count = 20, per = "60s"));
    for (cost, mistakes) in
        [(quote!(), 1), (quote!(cost = 1), 1), (quote!(cost = 3), 0), (quote!(cost = items.len() as u64), 0)]
    {
        let expanded = limit(quote!(#rules, #cost), &item).to_string();
        assert_eq!(expanded.matches("compile_error").count(), mistakes, "{cost}");
    }
}
