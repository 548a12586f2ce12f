//! Rules that can never bind, and rules that only seem so.

use quote::quote;

use super::expansion;
use crate::pipeline::limit;

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
