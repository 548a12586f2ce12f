//! The expansions of functions of every shape.

use quote::{ToTokens as _, quote};

use super::expansion;
use crate::pipeline::limit;

#[test]
fn a_future_is_checked_in_its_async_block_and_captures_no_more() {
    let item = quote! {
        /// Sends a code.
        ///
        /// # Errors
        ///
        /// It was not sent.
        pub fn send_code(phone: &str) -> impl Future<Output = Result<(), Rejection>> + Send + use<> {
            const LENGTH: usize = 6;
            let phone = phone.to_owned();
            async move { send(phone, LENGTH).await }
        }
    };
    insta::assert_snapshot!(expansion(quote!(key = "sms:{phone}", rule(count = 1, per = "60s")), &item));
}

#[test]
fn a_future_reads_values_of_the_context_when_it_is_polled() {
    let item = quote! {
        fn send_code(phone: &str) -> impl Future<Output = Result<(), Rejection>> + Send + use<> {
            async { Ok(()) }
        }
    };
    let attribute = quote! {
        key = "{@ip}/{phone}",
        rule(count = 1, per = "60s", message = "not so fast, {@ip} and {phone}"),
        rule(count = 5, per = "60s", key = "{@user:hash}"),
    };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn a_boxed_future_is_checked_in_its_async_block() {
    let item = quote! {
        fn place(&self, order: Order) -> Pin<Box<dyn Future<Output = Result<Receipt, Error>> + Send + '_>> {
            Box::pin(async move { self.orders.place(order).await })
        }
    };
    let attribute = quote!(key = "{order.id}", rule(count = 1, per = "60s"), limiter = self.limiter);
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn a_function_that_is_not_async_blocks_until_it_is_decided() {
    let item = quote! {
        fn login(user: &str, password: String) -> Result<Session, Error> {
            check(user, &password)?;
            Ok(Session::new(user))
        }
    };
    let attribute = quote! {
        key = "{user}", rule(count = 5, per = "60s"), wait = "2s", refund_if = Result::is_ok, skip_if = user.is_empty()
    };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn what_async_trait_has_written_is_checked_behind_its_bindings() {
    let item = quote! {
        fn place<'life0, 'async_trait>(
            &'life0 mut self,
            __arg1: Json<Order>,
        ) -> ::core::pin::Pin<Box<dyn ::core::future::Future<Output = Result<Receipt, Error>> + 'async_trait>>
        where
            'life0: 'async_trait,
            Self: 'async_trait,
        {
            Box::pin(async move {
                if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<Result<Receipt, Error>> {
                    #[allow(unreachable_code)]
                    return __ret;
                }
                let mut __self = self;
                let Json(order) = { let __arg1 = __arg1; __arg1 };
                let __ret: Result<Receipt, Error> = { __self.orders.place(order).await };
                #[allow(unreachable_code)]
                __ret
            })
        }
    };
    let attribute = quote!(key = "{self.tenant}:{order.id}", rule(count = 1, per = "60s"), limiter = self.limiter);
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn all_arguments_of_what_async_trait_has_written_are_those_of_the_user() {
    let item = quote! {
        fn place<'life0, 'async_trait>(
            &'life0 self,
            user: u64,
            __arg2: Json<Order>,
        ) -> ::core::pin::Pin<Box<dyn ::core::future::Future<Output = Result<Receipt, Error>> + 'async_trait>>
        where
            'life0: 'async_trait,
            Self: 'async_trait,
        {
            Box::pin(async move {
                let __self = self;
                let user = user;
                let Json(order) = __arg2;
                let __ret: Result<Receipt, Error> = { __self.orders.place(user, order).await };
                #[allow(unreachable_code)]
                __ret
            })
        }
    };
    insta::assert_snapshot!(expansion(quote!(key = "{*:debug}", rule(count = 1, per = "60s")), &item));
}

#[test]
fn all_arguments_need_a_name_each() {
    let refused = |arguments: proc_macro2::TokenStream| {
        let item = quote!(async fn place(&self, user: &str, #arguments) -> Result<(), Error> { Ok(()) });
        limit(quote!(key = "{*}", rule(count = 1, per = "60s")), &item).to_string().contains("leaves out")
    };
    assert!(refused(quote!(_: Order)));
    assert!(refused(quote!(Json(Order { id, .. }): Json<Order>)));
    assert!(refused(quote!((first, ..): (u8, u8, u8))));
    assert!(refused(quote!((first, _): (u8, u8))));
    assert!(!refused(quote!(_order: Order)));
    assert!(!refused(quote!(all @ Order { id, .. }: Order)));
    assert!(!refused(quote!(sizes: [u8; { let _ = 1; 2 }])));
}

#[test]
fn what_tokio_test_has_written_is_checked_in_the_future_it_runs() {
    let item = quote! {
        #[::core::prelude::v1::test]
        fn limited() -> Result<(), Rejection> {
            let body = async { call().await };
            {
                use tokio::runtime::Builder;
                return Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(body);
            }
        }
    };
    insta::assert_snapshot!(expansion(quote!(rule(count = 1, per = "60s")), &item));
}

#[test]
fn the_documentation_ends_with_the_limits_in_words() {
    let item = quote! {
        /// Sends a code.
        async fn send_code(phone: &str, plan: &Plan) -> Result<(), Rejection> {
            send(phone).await
        }
    };
    let attribute = quote! {
        key = "sms:{phone}",
        prevent_duplicate,
        rule(count = 10, per = "60s"),
        rule(count = 20, per = "120s", name = "twice"),
        rule(count = plan.calls(), per = "1h"),
        rule(count = 5, per = "1h", algorithm = "token_bucket", capacity = 100),
    };
    insta::assert_snapshot!(expansion(attribute, &item));
}

#[test]
fn two_attributes_of_one_function_share_a_heading() {
    let item = quote! {
        /// Sends a code.
        async fn send_code(phone: &str) -> Result<(), Rejection> { send(phone).await }
    };
    let once = limit(quote!(name = "a", rule(count = 1, per = "60s")), &item);
    let twice = limit(quote!(name = "b", rule(count = 2, per = "60s")), &once).to_string();
    assert_eq!(twice.matches("# Rate limits").count(), 1, "{twice}");
    assert!(twice.contains("at most `1 per 1m`") && twice.contains("at most `2 per 1m`"), "{twice}");
}

#[test]
fn a_function_without_documentation_is_summarized_by_its_limits() {
    let summary = |attribute| {
        let item = quote!(
            async fn draw(user: &str, ip: &str) -> Result<(), Rejection> {
                Ok(())
            }
        );
        let function = syn::parse2::<syn::ItemFn>(limit(attribute, &item)).expect("an expansion is a function");
        let cfg_attr = function.attrs[0].to_token_stream().to_string();
        let (_, documentation) = cfg_attr.split_once("doc = \"").expect("generated documentation");
        let (summary, rest) = documentation.split_once("\\n\\n").expect("a summary and more");
        assert!(rest.starts_with("# Rate limits"), "{rest}");
        summary.to_owned()
    };
    assert_eq!(summary(quote!(rule(count = 1, per = "60s"))), "Limited to `1 per 1m` for all calls together.");
    let several = quote!(
        key = "{user}",
        prevent_duplicate,
        rule(count = 9, per = "1h"),
        rule(count = 99, per = "1h", key = "{ip}")
    );
    assert_eq!(
        summary(several),
        "Limited to `prevent_duplicate per 5s`, `9 per 1h` for each `{user}`, and to `99 per 1h` for each `{ip}`."
    );
    let running =
        quote!(concurrency(limit = 1, lease = "30s"), concurrency(limit = n.into(), lease = "30s", key = "{user}"));
    assert_eq!(
        summary(running),
        "Limited to 1 concurrent call for all calls together, and to `n` concurrent calls for each `{user}`."
    );
    assert_eq!(summary(quote!(policy = POLICY, key = "{user}")), "Limited by the policy `POLICY`, for each `{user}`.");
}

#[test]
fn a_number_is_handed_over_by_value() {
    let item = quote!(
        async fn send(user: u64, place: &u64, form: Form) -> Result<(), Error> {
            Ok(())
        }
    );
    let expanded = expansion(quote!(key = "{user}/{place}/{form.id}", rule(count = 1, per = "60s")), &item);
    assert!(expanded.contains(".enter((user, (&(place), &(form.id))))"), "{expanded}");
}

#[test]
fn a_function_without_documentation_still_has_none_for_lints() {
    let item = quote!(
        pub async fn send_code() -> Result<(), Rejection> {
            Ok(())
        }
    );
    let expanded = limit(quote!(rule(count = 1, per = "60s")), &item).to_string();
    assert!(expanded.starts_with("# [cfg_attr (doc ,"), "{expanded}");
}

#[test]
fn an_async_block_that_does_not_parse_yet_is_checked_all_the_same() {
    for body in [quote!({ async move { let x = ; } }), quote!({ Box::pin(async move { self.orders. }) })] {
        let item = quote!(fn place(&self) -> BoxFuture<'_, Result<(), Error>> #body);
        let expanded = limit(quote!(rule(count = 1, per = "60s")), &item).to_string();
        assert!(expanded.contains("enter") && !expanded.contains("compile_error"), "{expanded}");
    }
}

#[test]
fn what_is_no_async_block_at_the_end_is_refused() {
    for body in [
        quote!({ ready() }),
        quote!({
            let future = async move {};
            future
        }),
        quote!({ || async move {} }),
        quote!({
            async move {};
        }),
        quote!({ spawn(async move {}) }),
        quote!({ Box::pin(later(async move {})) }),
        quote!({ async move {}.map(drop) }),
        quote!({
            let body = async { Ok(()) };
            drop(body);
        }),
        quote!({}),
    ] {
        let item = quote!(fn place() -> impl Future<Output = Result<(), Error>> #body);
        let expanded = limit(quote!(rule(count = 1, per = "60s")), &item).to_string();
        assert!(expanded.contains("has no async block to check the limit in"), "{expanded}");
    }
}

#[test]
fn a_return_around_the_async_block_is_refused_and_one_elsewhere_is_not() {
    let refused = |statement: proc_macro2::TokenStream| {
        let item = quote!(fn f() -> BoxFuture<'_, Result<(), Error>> { #statement Box::pin(async { Ok(()) }) });
        limit(quote!(rule(count = 1, per = "60s")), &item).to_string().contains("skips the limit")
    };
    assert!(refused(quote!(if busy() {
        return Box::pin(ready());
    })));
    assert!(!refused(quote!(
        fn helper() {
            return;
        }
    )));
    assert!(!refused(quote!(let helper = || { return 1; };)));
    assert!(!refused(quote!(let other = async { return 1; };)));
}

#[test]
fn a_future_is_wrapped_in_its_async_block_when_its_permit_may_be_given_back() {
    let refunded = |item: &proc_macro2::TokenStream| {
        let attribute =
            quote!(rule(count = 1, per = "60s"), refund_if = |result| result.is_err(), limiter = self.limiter);
        limit(attribute, item).to_string()
    };
    let boxed = refunded(&quote! {
        fn place(&self) -> Pinned<'_, Receipt> { Box::pin(async move { self.orders.place().await }) }
    });
    assert!(boxed.contains("< Pinned < '_ , Receipt > as :: core :: future :: Future > :: Output"), "{boxed}");
    let opaque = refunded(&quote! {
        fn place(&self) -> impl Future<Output = Result<impl Debug, Error>> { async { self.orders. } }
    });
    assert!(opaque.contains("Result < _ , Error >") && opaque.contains("{ self . orders . }"), "{opaque}");
}
