//! What expansions look like, and what the pipeline survives.

use proc_macro2::TokenStream;
use quote::quote;

/// Prints an expansion as it would be written by hand.
fn expansion(attribute: TokenStream, item: TokenStream) -> String {
    let file = syn::parse2(crate::limit(attribute, item)).expect("an expansion is a file of items");
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
    insta::assert_snapshot!(expansion(attribute, item));
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
    insta::assert_snapshot!(expansion(attribute, item));
}
