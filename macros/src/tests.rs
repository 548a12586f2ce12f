//! How expansions look, and which inputs the pipeline survives.

pub(crate) mod arguments;
mod diagnostics;
mod limits;
mod shapes;

use proc_macro2::TokenStream;
use quote::quote;

use crate::pipeline::limit;

fn expansion(attribute: TokenStream, item: &TokenStream) -> String {
    let file = syn::parse2(limit(attribute, item)).expect("an expansion is a file of items");
    prettyplease::unparse(&file)
}

#[test]
fn a_function_is_checked_before_its_body() {
    let attribute = quote! { key = "sms:{phone}", rule(count = 1, per = "60s"), rule(count = 5, per = "1h"), };
    let item = quote! {
        /// Sends a code.
        pub async fn send_code(phone: &str) -> Result<(), Rejection> {
            const LENGTH: usize = 6;
            send(phone, LENGTH).await
        }
    };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn a_method_may_name_everything() {
    let attribute = quote! {
        prevent_duplicate,
        rule(count = 10, per = "90s"),
        name = "orders.place",
        key = "{{{self.tenant}}}/{order.0.id()}%",
        limiter = self.limiter,
    };
    let item = quote! {
        async fn place(&mut self, Json(order): Json<(Order,)>) -> Result<Receipt, Error> {
            self.orders.push(order);
            Ok(Receipt)
        }
    };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn every_algorithm_is_built_as_it_would_be_by_hand() {
    let attribute = quote! {
        prevent_duplicate(per = "10ms"),
        rule(count = 10, per = "60s", algorithm = "fixed_window", name = "burst"),
        rule(count = 20, per = "1m", algorithm = "sliding_counter"),
        rule(count = 5, per = "1s", algorithm = "token_bucket", capacity = 100, initial = 3, reset_after = "10s"),
    };
    let item = quote! { async fn draw() -> Result<(), Rejection> { Ok(()) } };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[cfg(feature = "cron")]
#[test]
fn a_schedule_is_read_again_at_the_first_call() {
    let attribute = quote! { rule(count = 10, cron = "0 0 6 * * *", tz = "Asia/Shanghai") };
    let item = quote! { async fn draw() -> Result<(), Rejection> { Ok(()) } };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[cfg(not(feature = "cron"))]
#[test]
fn a_schedule_without_its_feature_says_which_it_is() {
    let item = quote! { async fn draw() -> Result<(), Rejection> { Ok(()) } };
    let expanded = limit(quote!(rule(count = 10, cron = "0 0 6 * * *")), &item).to_string();
    assert!(expanded.contains("`cron` needs the feature `cron` of tallygate"), "{expanded}");
    assert_eq!(expanded.matches("compile_error").count(), 1);
}

#[test]
fn counts_are_evaluated_before_the_await() {
    let attribute =
        quote! { prevent_duplicate, rule(count = self.plan.calls(), per = "1h"), rule(count = 9, per = "1m") };
    let item = quote! { async fn call(&self) -> Result<(), Rejection> { Ok(()) } };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn a_message_is_rendered_when_the_call_is_rejected() {
    let attribute = quote! {
        rule(count = 1, per = "60s", message = "once a {@per}, {phone:trim}"),
        rule(count = 5, per = "1h"),
        message = "{@rule}: {@count} are enough for {phone:hash}; try again in {@retry_after}",
        key = "{phone:hash}/{email:trim:lower}",
        limiter = limiter,
        reject = |rejection| Error::limited(rejection),
        crate = crate::reexports::tallygate,
    };
    let item = quote! {
        async fn send_code(phone: &str, email: &str, limiter: &Limiter) -> Result<(), Error> { Ok(()) }
    };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn values_of_the_context_are_read_where_the_call_is_decided() {
    let attribute = quote! {
        key = "{@ip}/{phone}",
        rule(count = 1, per = "60s", message = "not so fast, {@user:lower}"),
        rule(count = 5, per = "60s", key = "{@user:trim:hash}"),
    };
    let item = quote! { async fn send_code(phone: &str) -> Result<(), Rejection> { Ok(()) } };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn a_mistaken_attribute_leaves_the_function_as_it_is() {
    let item = quote! {
        /// Sends a code.
        #[must_use]
        pub async fn send_code(phone: &str) -> Result<(), Rejection> {
            send(phone).await
        }
    };
    let expanded = limit(quote!(rule(count = 0, per = "0s")), &item).to_string();
    assert!(expanded.starts_with(&item.to_string()));
    assert_eq!(expanded.matches("compile_error").count(), 2);
}

#[test]
fn a_body_that_does_not_parse_yet_is_limited_all_the_same() {
    let item = quote! {
        async fn send_code(phone: &str) -> Result<(), Rejection> {
            let code = phone.
        }
    };
    let expanded = limit(quote!(rule(count = 1, per = "60s")), &item).to_string();
    assert!(expanded.contains("let code = phone ."), "{expanded}");
    assert!(expanded.contains("enter") && !expanded.contains("compile_error"), "{expanded}");
}

#[test]
fn what_a_body_starts_with_stays_in_front() {
    let item = quote! {
        async fn send_code() -> Result<(), Rejection> {
            #![allow(unused)]
            use std::mem;
            macro_rules! nothing { () => {} }
            nothing!();
            const LATE: u8 = 1;
        }
    };
    let expanded = limit(quote!(rule(count = 1, per = "60s")), &item).to_string();
    let at = |text: &str| expanded.find(text).unwrap_or_else(|| panic!("no {text} in {expanded}"));
    assert!(at("allow") < at("use std :: mem") && at("macro_rules") < at("enter"));
    assert!(at("enter") < at("nothing ! () ;") && at("nothing ! () ;") < at("LATE"));
}

#[test]
fn whatever_is_written_in_the_attribute_is_answered() {
    let item = quote! { async fn send_code(phone: &str) -> Result<(), Rejection> { Ok(()) } };
    for attribute in [
        quote!(,),
        quote!(= 1),
        quote!(rule = ),
        quote!(rule(count = , per = )),
        quote!(rule(count = 1, per = "1s") rule(count = 2, per = "2s")),
        quote!(rule(rule(rule()))),
        quote!(rule[count = 1]),
        quote!(limiter = |a, b| a, limiter),
        quote!(key = "{"),
        quote!(key = "{'}"),
        quote!(key = "{\"}"),
        quote!(key = "{1a}"),
        quote!(key = b"sms"),
        quote!(::tallygate),
        quote!({ rule(count = 1, per = "1s") }),
    ] {
        let expanded = limit(attribute.clone(), &item).to_string();
        assert!(expanded.starts_with(&item.to_string()) && expanded.contains("compile_error"), "{attribute}");
    }
}

#[test]
fn what_is_around_a_limit_is_asked_for_in_one_call() {
    let attribute = quote! {
        key = "{user.name}",
        rule(count = 100, per = "1h"),
        rule(count = user.plan.calls(), per = "1d"),
        rule(count = 20, per = "1h", key = "{address:subnet}", message = "too many numbers from {address}"),
        rule(count = 30, per = "1d", key = "{address:subnet}"),
        prevent_duplicate(key = "{order.id}"),
        ban(denials = 20, within = "10m", duration = "1h", message = "gone for {@retry_after}"),
        cost = order.items.len() as u64,
        wait = "2s",
        skip_if = user.is_admin(),
    };
    let item = quote! {
        /// Places an order.
        async fn place(user: &User, address: IpAddr, order: Order) -> Result<(), Rejection> { Ok(()) }
    };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn a_body_is_wrapped_only_where_its_permit_may_be_given_back() {
    let attribute = quote! { key = "{user}", rule(count = 5, per = "1h"), refund_if = Result::is_ok, shadow };
    let item = quote! {
        async fn login(user: &str, mut attempts: u32) -> Result<impl Display, Error> {
            const MOST: u32 = 3;
            attempts += check(user).await?;
            Ok(attempts.min(MOST))
        }
    };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn a_policy_may_be_built_elsewhere() {
    let attribute = quote! {
        policy = POLICY,
        key = "{user}",
        subject("network", "{ip:subnet}"),
        message = "not now, {user}",
        skip_if = user.is_empty(),
    };
    let item = quote! {
        fn draw(user: &str, ip: IpAddr) -> BoxFuture<'_, Result<(), Rejection>> { Box::pin(async move { Ok(()) }) }
    };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn a_companion_returns_the_check_of_a_call() {
    let attribute = quote! {
        key = "{self.tenant}/{order.id}",
        rule(count = self.plan.calls(), per = "1h"),
        rule(count = 20, per = "1h", key = "all"),
        cost = order.items.len() as u64,
        allow_zero_cost,
        wait = "2s",
        refund_if = Result::is_err,
        skip_if = order.items.is_empty(),
        message = "not now, {order.id}",
        check_fn = place_limit,
    };
    let item = quote! {
        /// Places an order.
        #[expect(clippy::too_many_arguments)]
        #[inline]
        pub(crate) async fn place<T>(&self, Json(mut order): Json<Order>, by: T, _: u8) -> Result<(), Rejection>
        where
            T: Send,
        {
            order.place(by).await
        }
    };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn a_mistaken_attribute_leaves_a_stub_of_the_companion() {
    let item = quote! { pub async fn draw(&self, user: &str) -> Result<(), Rejection> { Ok(()) } };
    let expanded =
        limit(quote!(rule(count = 0, per = "60s"), check_fn = draw_limit, crate = ::limits), &item).to_string();
    let stub = quote!(pub fn draw_limit(&self, user: &str) -> ::limits::Check<'static>).to_string();
    assert!(expanded.contains(&stub) && expanded.contains("compile_error"), "{expanded}");
    for attribute in [quote!(check_fn = draw), quote!(check_fn = "draw_limit"), quote!(check_fn)] {
        let expanded = limit(attribute, &item).to_string();
        assert_eq!(expanded.matches("fn draw").count(), 1, "{expanded}");
    }
}

#[test]
fn what_becomes_of_calls_in_an_outage_is_part_of_the_policy() {
    let attribute = quote! { rule(count = 10, per = "60s"), on_outage = "local", deadline = "50ms" };
    let item = quote! {
        /// Searches.
        async fn search() -> Result<(), Rejection> { Ok(()) }
    };
    insta::assert_snapshot!(expansion(attribute, &item));
}
