//! The `#[rate_limit]` attribute of [Tallygate](https://docs.rs/tallygate), which re-exports it beside the runtime that
//! its expansions call.
//!
//! One direction: tokens become arguments and options (`argument`, `attr`), these a model (`model`), which is validated
//! (`validate`) and expanded (`expand`, `document`). Every stage reports all the mistakes it finds.

mod argument;
mod attr;
mod debug;
mod diagnostic;
mod expand;
mod limiter;
mod model;
mod pipeline;
mod placeholder;
#[cfg(test)]
mod random;
mod shape;
mod suggestion;
mod synonym;
mod template;
#[cfg(test)]
mod tests;
#[cfg(all(test, not(fuzzing)))]
mod trial;
#[cfg(fuzzing)]
pub mod trial;
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
/// A call is decided by all its rules at once: it is admitted and counted by every one of them, or rejected and counted
/// by none. The decision is made before anything of the body runs; a future that is never polled counts nothing, and
/// one that is dropped while it waits for the decision may count.
///
/// # Arguments
///
/// | argument | meaning | default |
/// | --- | --- | --- |
/// | `rule(...)` | a limit, see below; any number of them | |
/// | `prevent_duplicate` | a rule in front of the others: one call in 5 seconds, whose denial is of kind `Duplicate` | none |
/// | `prevent_duplicate(per = "30s", key = "{order.id}", message = "…")` | the same with another window, key or message | |
/// | `key = "sms:{phone}"` | whom the rules count: each value has a tally of its own | one tally for the whole function |
/// | `name = "sms.send"` | the name of the policy | the path of the function |
/// | `message = "try again in {@retry_after}"` | what a rejection by a rule says | the limit and the wait, in English |
/// | `cost = items.len() as u64` | how many calls this one counts as: a number, or an expression of type `u64` | `1` |
/// | `wait = "2s"` | waits up to that long for admission | rejected at once |
/// | `refund_if = Result::is_err` | counts the call no more if this holds for its result: see [below](#refunds) | counted in any case |
/// | `ban(denials = 20, within = "10m", duration = "1h")` | bans whom the `key` names after that many denials: see [below](#bans) | none |
/// | `skip_if = user.is_admin()` | runs the function without asking, if this `bool` over the arguments is true | |
/// | `shadow` | tries the limits out: see [below](#shadow) | |
/// | `policy = POLICY` | a `Policy` in place of `name`, `rule`, `prevent_duplicate` and `ban`: see [below](#policies) | |
/// | `reject = ApiError::limited` | makes what the function returns of a `Rejection`: a path or a closure | `FromRejection` |
/// | `limiter = self.limiter` | who decides: an expression that is, or derefs to, a `Limiter`, and is evaluated by each call | the installed limiter |
/// | `crate = ::limits` | the path of the crate `tallygate`, where it has another one | `::tallygate` |
///
/// At least one `rule` or `prevent_duplicate`, or a `policy`, is needed. A duration is a whole number and one of `ms`,
/// `s`, `m`, `h`, `d`. The order of the arguments does not matter, but that of the rules is the one in which a
/// rejection counts them.
///
/// # Rules
///
/// | argument | meaning | default |
/// | --- | --- | --- |
/// | `count = 10` | how many calls: a number, or an expression over the arguments, see below | |
/// | `per = "60s"` | the length of the window | |
/// | `algorithm = "sliding_window"` | how calls are counted | `"sliding_window"` |
/// | `capacity = 100` | of a token bucket: the most tokens it holds | `count` |
/// | `initial = 3` | of a token bucket: how many it holds while it is unused | `capacity` |
/// | `reset_after = "10s"` | of a token bucket: after how long without an admitted call it is unused again | the time to fill it |
/// | `cron = "0 0 6 * * *"` | in place of `per`: count afresh at the ticks of this expression | |
/// | `tz = "Asia/Shanghai"` | of `cron`: the time zone | `"UTC"` |
/// | `key = "{ip}"` | whom this rule counts, see [below](#keys) | the policy's `key` |
/// | `name = "daily"` | how a rejection names the rule | none |
/// | `message = "…"` | what a rejection by this rule says | the policy's `message` |
///
/// | algorithm | admits a call when |
/// | --- | --- |
/// | `"sliding_window"` | fewer than `count` were admitted in the time `per` before it: exact, without a burst at any edge |
/// | `"fixed_window"` | fewer than `count` were admitted since the window opened, at a first call; it lasts `per` |
/// | `"sliding_counter"` | about the same as `sliding_window`, in constant memory: for very large counts |
/// | `"token_bucket"` | there is a token; `count` of them flow in per `per`, continuously, up to `capacity` |
/// | `cron = "…"` | fewer than `count` were admitted since the last tick |
///
/// `cron` needs the feature `cron` of `tallygate`. Its six fields are second, minute, hour, day of the month, month and
/// day of the week, as in Spring; `Schedule` has the whole syntax.
///
/// A `count` may be any expression of type `u64`, such as `count = user.plan.calls()`. Each call evaluates it before it
/// is decided, with all arguments in scope. The tally is the same whatever the count. A count of 0 closes the door, and
/// one that is too large for the algorithm is the largest that is not.
///
/// # Keys
///
/// A placeholder is an argument, its fields and its methods, whose value is `Display`: `{phone}`, `{user.id}`,
/// `{pair.0}`, `{address.ip()}`, `{self.tenant}`. Arguments that are destructured are named by what they bind:
/// `{order.id}` for `Json(order): Json<Order>`. `{{` and `}}` are braces.
///
/// The arguments are only borrowed, and only until the key is rendered. Values are escaped, so that different values
/// never make the same key. Two placeholders therefore need something between them that no value contains, like `:` or
/// `/`; letters, digits and `. _ @ + ~ - % !` will not do.
///
/// | filter | makes of the value |
/// | --- | --- |
/// | `{email:lower}` | lower case |
/// | `{email:trim}` | the same without white space around it |
/// | `{phone:hash}` | a digest, keyed with the `secret` of the limiter: for personal data |
/// | `{address:subnet}` | the network: IPv4 as it is, IPv6 as its /64; of `Display` values like `IpAddr` and `SocketAddr` |
///
/// A rule, and `prevent_duplicate`, may have a key of its own, so that a call is limited per phone, per network and as
/// one of all calls at once. All these subjects are decided as one: the call is counted for each of them, or for none.
/// Rules with the same `key` share a tally. A text without placeholders, like `key = "all"`, is one subject for all
/// calls; one that names an argument without its braces is refused.
///
/// Filters are applied in their order: `{email:trim:lower}`. Without a secret, the key of a digest is the same for
/// everybody: see `LimiterBuilder::secret`. A value that is no address passes `subnet` as it is.
///
/// # Messages
///
/// A message is what `Rejection` shows when it is printed, if a rule has denied the call. It is rendered then, with the
/// same placeholders and filters, but without escapes, and with these:
///
/// | placeholder | shows |
/// | --- | --- |
/// | `{@retry_after}` | how long to wait, rounded up: `42s`; `never` where waiting does not help |
/// | `{@count}` | the count of the rule that denied the call |
/// | `{@per}` | its window: `1m`, or the expression and the time zone of its schedule |
/// | `{@rule}` | its name, or the rule in words where it has none |
///
/// The message of a rule comes before that of the policy. That of a ban is said by itself, and can show
/// `{@retry_after}` only. An outage is told in its own words.
///
/// # Cost
///
/// `cost` is evaluated before the call is decided, with all arguments in scope. A call that costs more than a rule can
/// ever admit is rejected without a `retry_after`; one of cost 0 is decided by what is there, and counts nothing. A
/// duplicate is told by calls, whatever they cost.
///
/// # Waiting
///
/// With `wait`, a call that is not admitted stands in line until it is, and is rejected when it is certain that it will
/// not be in time. Callers of one process and one subject are admitted in the order they came. It needs a tokio runtime
/// with time enabled. A call that is dropped while it waits counts nothing.
///
/// # Refunds
///
/// `refund_if` is a path or a closure, `Fn(&T) -> bool` where the function results in `T`; the arguments are the
/// body's. When the body is done and it holds, exactly the hits of this call are taken back: `Result::is_ok` counts
/// only failures, such as wrong passwords, and `Result::is_err` does not charge for what failed. Until then the call
/// counts, so that no window ever admits more than its `count` at once. What is given back is no duplicate of the next
/// call, either.
///
/// A future that is dropped, and a body that panics, give nothing back. Where the permit cannot be given back because
/// Redis does not answer, the result is returned as it is, the call stays counted, and the log says so. The result is
/// kept while the permit is given back, so the future is `Send` only if the result is.
///
/// # Bans
///
/// After `denials` denials in any window of length `within`, whom the policy's `key` names is banned for `duration`:
/// every call is rejected with the kind `Banned`, and no rule is asked. The denials that count are those by any rule,
/// duplicates included, whatever its `key`; one that a `wait` sleeps out does not. When the ban is over, denials are
/// counted anew. `ban(…, message = "…")` says what a banned caller is told.
///
/// # Shadow
///
/// With `shadow`, calls are decided and counted as ever, but none is rejected, not even when Redis does not answer. A
/// call that would have been is told in the log (`denied in shadow`) and in the metrics (outcome `shadow`), and counts
/// nothing, but towards a `ban`.
///
/// # Policies
///
/// `policy` is an expression over the arguments that is, or derefs to, a `Policy`: a static `LazyLock<Policy>`, a field
/// of `self`, `policy.with_counts([calls])`. Functions of one policy share its tallies, as all of one name do. `key`,
/// `message`, `cost` and the others go along with it. A policy that has rules on further subjects, by
/// `PolicyBuilder::rule_on`, is for use by hand: the attribute does not name those subjects, so each call is rejected
/// with the kind `Unavailable`, whose source says why.
///
/// # Names
///
/// Functions whose policies have the same name share their tallies. Without a `name`, a policy is named by the path of
/// its function, like `shop.sms.send_code` or `shop.sms.Sender.send_code`; all instances of a generic function are one.
/// That path changes when the function moves, and its spelling is the compiler's for methods of traits and of generic
/// types. Give a `name` where a tally has to outlive that, and to each of two functions of one name within one
/// function.
///
/// # The function
///
/// It is an `async fn`, free or a method, or a function that ends with its async block, such as one that returns `impl
/// Future` or `Pin<Box<dyn Future>>`, or that `#[async_trait]` has rewritten. What it results in is `FromRejection`, as
/// every `Result<T, E>` with `E: From<Rejection>` is, `Rejection` itself included; for any other type, `reject` says
/// how it is made. Everything else about it stays as it is: its body, its attributes, and whether its future is `Send`.
/// Only `refund_if` puts the body into an async block of its own.
///
/// # Errors
///
/// A mistake in the attribute is a compile error that says what to write instead, at the place of the mistake: rules
/// that are missing, contradictory or can never bind, arguments that are unknown or repeated, placeholders that name no
/// argument. All the mistakes are reported at once, and the function is left as it is.
#[cfg(not(fuzzing))]
#[proc_macro_attribute]
pub fn rate_limit(attribute: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let expansion = pipeline::limit(attribute.into(), &item.into());
    debug::print(&expansion);
    expansion.into()
}
