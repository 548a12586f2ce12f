//! The `#[rate_limit]` attribute of [Tallygate](https://docs.rs/tallygate), which re-exports it beside the runtime that its
//! expansions call.
//!
//! One direction: tokens become arguments and options (`argument`, `attr`), these a model (`model`), which is validated
//! (`validate`) and expanded (`expand`, `document`). Every stage reports all the mistakes it finds.

mod argument;
mod attr;
mod debug;
mod diagnostic;
mod document;
mod expand;
mod model;
mod pipeline;
mod rule;
mod shape;
mod template;
#[cfg(test)]
mod tests;
mod validate;

/// Limits an async function: it runs when every rule admits the call, and else returns a `Rejection`.
///
/// ```text
/// use tallygate::{Rejection, rate_limit};
///
/// #[rate_limit(
///     key = "sms:{phone}",
///     rule(count = 1, per = "60s"),
///     rule(count = 5, per = "1h"),
///     rule(count = 10, per = "24h"),
///     prevent_duplicate,
/// )]
/// async fn send_code(phone: &str) -> Result<(), Rejection> {
///     // …
///     Ok(())
/// }
/// ```
///
/// A call is decided by all its rules at once: it is admitted and counted by every one of them, or rejected and counted by
/// none. The decision is made before anything of the body runs; a future that is never polled counts nothing, and one that
/// is dropped while it waits for the decision may count.
///
/// # Arguments
///
/// | argument | meaning | default |
/// | --- | --- | --- |
/// | `rule(count = 10, per = "60s")` | at most `count` calls in any window of length `per`, wherever it starts; any number of rules | |
/// | `prevent_duplicate` | a rule in front of the others: one call in 5 seconds, whose denial is of kind `Duplicate` | none |
/// | `key = "sms:{phone}"` | whom the rules count: each value has a tally of its own | one tally for the whole function |
/// | `name = "sms.send"` | the name of the policy | the path of the function |
/// | `limiter = self.limiter` | who decides: an expression that is, or derefs to, a `Limiter` | the installed limiter |
///
/// At least one `rule` or `prevent_duplicate` is needed. A duration is a whole number and one of `ms`, `s`, `m`, `h`, `d`.
///
/// # Keys
///
/// A placeholder is an argument, its fields and its methods, whose value is `Display`: `{phone}`, `{user.id}`, `{pair.0}`,
/// `{address.ip()}`, `{self.tenant}`. Arguments that are destructured are named by what they bind: `{order.id}` for
/// `Json(order): Json<Order>`. `{{` and `}}` are braces.
///
/// The arguments are only borrowed, and only until the key is rendered. Values are escaped, so that different values never
/// make the same key. Two placeholders therefore need something between them that no value contains, like `:` or `/`; letters,
/// digits and `. _ @ + ~ - % !` will not do.
///
/// # Names
///
/// Functions whose policies have the same name share their tallies. Without a `name`, a policy is named by the path of its
/// function, like `shop.sms.send_code` or `shop.sms.Sender.send_code`; all instances of a generic function are one. That path
/// changes when the function moves, and its spelling is the compiler's for methods of traits and of generic types. Give a
/// `name` where a tally has to outlive that, and to each of two functions of one name within one function.
///
/// # The function
///
/// It is an `async fn`, free or a method, whose return type is `FromRejection`: every `Result<T, E>` with
/// `E: From<Rejection>` is, `Rejection` itself included. Everything else about it stays as it is: its body, its attributes, and
/// whether its future is `Send`.
///
/// # Errors
///
/// A mistake in the attribute is a compile error that says what to write instead, at the place of the mistake: rules that are
/// missing, contradictory or can never bind, arguments that are unknown or repeated, placeholders that name no argument. All
/// the mistakes are reported at once, and the function is left as it is.
#[proc_macro_attribute]
pub fn rate_limit(attribute: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let limited = pipeline::limit(attribute.into(), &item.into());
    debug::show(&limited);
    limited.into()
}
