//! The `#[rate_limit]` attribute of [Tallygate](https://docs.rs/tallygate), which re-exports it beside the runtime that
//! its expansions call.
//!
//! The stages of the pipeline import each other in one direction: tokens become options (`attr`), these a model
//! (`model`), which is validated against itself and the function (`validate`, `shape`) and expanded (`expand`). Every
//! stage reports all the mistakes that it finds.

mod attr;
mod debug;
mod diagnostic;
mod expand;
mod model;
mod pipeline;
#[cfg(test)]
mod random;
mod shape;
mod template;
#[cfg(test)]
mod tests;
#[cfg(all(test, not(fuzzing)))]
mod trial;
#[cfg(fuzzing)]
pub mod trial;
mod validate;

/// Limits an async function: it runs if every rule admits the call, and returns a `Rejection` otherwise.
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
/// All rules decide a call together: either every rule admits and counts it, or it is rejected and no rule counts it. The
/// decision comes before anything in the body runs. A future that is never polled counts nothing; one that is dropped
/// while it waits for the decision may count.
///
/// # Arguments
///
/// | argument | meaning | default |
/// | --- | --- | --- |
/// | `rule(...)` | a limit; up to 32 of them in all: see [rules](#rules) | |
/// | `prevent_duplicate` | a rule before the others: one call in 5 seconds, denied with the kind `Duplicate` | none |
/// | `prevent_duplicate(per = "30s", key = "{order.id}", message = "…")` | the same with another window, key or message | |
/// | `prevent_duplicate(release_if = Result::is_err)` | the same; a call for whose result this holds may be repeated at once: see [refunds](#refunds) | |
/// | `concurrency(limit = 10, lease = "30s")` | a limit on concurrent calls; one for each subject: see [concurrency](#concurrency) | |
/// | `key = "sms:{phone}"` | the subject that the rules count; each subject has a tally of its own: see [keys](#keys) | one tally for all calls |
/// | `name = "sms.send"` | the name of the policy: see [names](#names) | the path of the function |
/// | `message = "try again in {@retry_after}"` | the text of a rejection: see [messages](#messages) | the limit and the wait, in English |
/// | `cost = items.len() as u64` | the number of calls that this one counts as: see [cost](#cost) | `1` |
/// | `allow_zero_cost` | lets a `cost` of 0 count nothing | counts as 1 |
/// | `wait = "2s"` | waits up to that long for admission: see [waiting](#waiting) | no wait |
/// | `refund_if = Result::is_err` | refunds the call if this holds for its result: see [refunds](#refunds) | no refund |
/// | `settle = \|reply\| reply.tokens()` | counts the call as what it has used, in place of its `cost`: see [settling](#settling) | the `cost` |
/// | `ban(denials = 20, within = "10m", duration = "1h")` | bans a subject after that many denials: see [bans](#bans) | no ban |
/// | `on_outage = "local"` | what becomes of calls while Redis is away: see [outages](#outages) | what the limiter says: `"deny"` |
/// | `deadline = "50ms"` | the longest time that a decision takes | what the limiter says: 250 ms |
/// | `warn_at = 0.8` | the share of a limit from which a subject is near it: see [warnings](#warnings) | no warnings |
/// | `skip_if = user.is_admin()` | runs the function without a decision if this `bool` is true | |
/// | `shadow` | decides and reports, but rejects nothing: see [shadow](#shadow) | |
/// | `policy = POLICY` | a `Policy` in place of `name`, `rule`, `prevent_duplicate`, `ban`, `on_outage`, `deadline` and `warn_at`: see [policies](#policies) | |
/// | `subject("network", "{ip:subnet}")` | another subject of that policy: its label and its key; any number of them | |
/// | `check_fn = send_code_limit` | generates a function that returns the `Check` of a call: see [companions](#companions) | |
/// | `openapi = SendCodeLimits` | generates a type with the responses to rejected calls: see [OpenAPI](#openapi) | |
/// | `reject = ApiError::limited` | turns a `Rejection` into what the function returns: a path or a closure | `FromRejection` |
/// | `limiter = self.limiter` | the limiter that decides: an expression that is, or derefs to, a `Limiter`; every call evaluates it | the installed limiter |
/// | `crate = ::limits` | the path of the crate `tallygate`, if it is another one | `::tallygate` |
///
/// The attribute needs at least one `rule`, `concurrency`, `prevent_duplicate` or `policy`. A duration is a whole number and
/// one of `ms`, `s`, `m`, `h`, `d`. The arguments may come in any order. A rejection numbers the rules from 0:
/// `prevent_duplicate` first, then each `rule` and then each `concurrency`, in the order in which they are written.
///
/// # Rules
///
/// | argument | meaning | default |
/// | --- | --- | --- |
/// | `count = 10` | the number of calls: a number, or an expression over the arguments | |
/// | `per = "60s"` | the length of the window | |
/// | `algorithm = "sliding_window"` | how calls are counted | `"sliding_window"` |
/// | `capacity = 100` | of a token bucket: the most tokens that it holds | `count` |
/// | `initial = 3` | of a token bucket: the tokens that it holds while it is unused | `capacity` |
/// | `reset_after = "10s"` | of a token bucket: the time without an admitted call after which it is unused again | the time to fill it |
/// | `cron = "0 0 6 * * *"` | in place of `per`: counting starts again at each tick of this expression | |
/// | `tz = "Asia/Shanghai"` | of `cron`: the time zone | `"UTC"` |
/// | `key = "{ip}"` | the subject that this rule counts: see [keys](#keys) | the `key` of the attribute |
/// | `name = "daily"` | the name by which a rejection reports the rule | none |
/// | `message = "…"` | the text of a rejection by this rule | the `message` of the attribute |
///
/// | algorithm | admits a call if |
/// | --- | --- |
/// | `"sliding_window"` | fewer than `count` calls were admitted in the time `per` before it: exact, without a burst at any edge |
/// | `"fixed_window"` | fewer than `count` calls were admitted since the window opened, at a first call; it lasts `per` |
/// | `"sliding_counter"` | about the same as `sliding_window`, in constant memory: for very large counts |
/// | `"token_bucket"` | there is a token; `count` of them flow in per `per`, continuously, up to `capacity` |
/// | `cron = "…"` | fewer than `count` calls were admitted since the last tick |
///
/// `cron` needs the feature `cron` of `tallygate`. Its six fields are second, minute, hour, day of the month, month and
/// day of the week, as in Spring; `Schedule` documents the whole syntax.
///
/// A `count` may be any expression of type `u64`, such as `count = user.plan.calls()`. Each call evaluates it before the
/// decision, with all arguments in scope. The tally does not depend on it. A count of 0 denies every call, and a count that
/// is too large for the algorithm is reduced to the largest possible one.
///
/// # Concurrency
///
/// `concurrency` admits a call if fewer than `limit` calls of the subject are running, over all processes. A call runs
/// from its admission until its body is over: by its end, by `return` or `?`, by a panic, or because its future is
/// dropped. What the body leaves behind, such as a stream that it returns, is not counted.
///
/// | argument | meaning | default |
/// | --- | --- | --- |
/// | `limit = 10` | the number of calls: a number, or an expression over the arguments, like `count` | |
/// | `lease = "30s"` | how long a call stays counted whose process has died: from `1s` to `1h` | |
/// | `key = "{user}"` | the subject whose calls are counted: see [keys](#keys) | the `key` of the attribute |
/// | `name = "exports"` | the name by which a rejection reports the limit | none |
/// | `message = "…"` | the text of a rejection by this limit | the `message` of the attribute |
///
/// A call may take longer than its `lease`, which is renewed as long as the call is running. Each subject has one such
/// limit. It counts calls and ignores their cost.
///
/// # Keys
///
/// A placeholder shows an argument, its fields and its methods, whose value is `Display`: `{phone}`, `{user.id}`,
/// `{pair.0}`, `{address.ip()}`, `{self.tenant}`. An argument that is destructured has the names that its pattern binds:
/// `{order.id}` for `Json(order): Json<Order>`. An `Option` needs a default: `{name.as_deref().unwrap_or_default()}`.
/// `{{` and `}}` are braces. `{*}` stands for all arguments but `self`, with `:` between them, and `{*:hash}` filters each of
/// them. It needs a name for each, without `_` and `..`. What `{*:debug}` shows has to be complete and the same each time:
/// `Debug` of a `HashMap` shows its entries in any order.
///
/// `{@ip}`, and any other name behind an `@`, shows a value of the context of the call: what a web server knows of the
/// request, or what `context::scope` was given. It is read when the future of the call is first polled. A call whose context
/// lacks it is rejected with the kind `Unavailable`, and the source of the rejection names the value and the remedy.
///
/// The key only borrows the arguments, and only until it is rendered. Values are escaped, so different values never make
/// the same key. Two placeholders therefore need a separator between them that no value contains, like `:` or `/`; letters,
/// digits and `. _ @ + ~ - % !` are none.
///
/// | filter | changes the value to |
/// | --- | --- |
/// | `{form:debug}` | what `Debug` shows, in place of `Display` |
/// | `{email:lower}` | lower case |
/// | `{email:trim}` | the same without white space around it |
/// | `{phone:hash}` | a digest, keyed with the `secret` of the limiter: for personal data |
/// | `{address:subnet}` | the network: IPv4 as it is, IPv6 as its /64; for values like `IpAddr` and `SocketAddr` |
///
/// Filters apply from left to right: `{email:trim:lower}`. Without a secret, the digest has a public key: see
/// `LimiterBuilder::secret`. `subnet` leaves a value that is no address as it is.
///
/// A rule, `concurrency` and `prevent_duplicate` may have a key of their own, so that a call is limited by phone, by network
/// and as one of all calls at the same time. These subjects are decided together: the call is counted for each, or for none.
/// Rules with the same `key` share a tally. A text without placeholders, like `key = "all"`, is one subject for all calls.
/// Text that was meant to show a value is refused: `phone` or `$phone` without braces, `@ip`, `{{phone}}`, `%s`.
///
/// # Messages
///
/// `Rejection` shows its message if a rule denied the call. The message is rendered then, with the same placeholders and
/// filters as a key, without escapes, and with these:
///
/// | placeholder | shows |
/// | --- | --- |
/// | `{@retry_after}` | how long to wait, rounded up: `42s`; `never` if waiting does not help |
/// | `{@count}` | the count of the rule that denied the call |
/// | `{@per}` | its window: `1m`, or the expression and the time zone of its schedule; `concurrency` has none |
/// | `{@rule}` | its name, or the rule itself if it has none |
/// | `{@ip}`, `{@user}`, … | values of the context; nothing where there is none of that name |
///
/// The message of a rule takes precedence over the message of the attribute. A ban has a message of its own, which can
/// show no other value of the rejection than `{@retry_after}`. A call that could not be decided has the text of the error kind.
///
/// # Cost
///
/// `cost` is a number, or an expression of type `u64`. Each call evaluates it before the decision, with all arguments in
/// scope. A call that costs more than a rule can ever admit is rejected without a `retry_after`. Duplicate detection
/// ignores the cost.
///
/// An expression that evaluates to 0 counts as 1, since a client that chooses the cost must not get free calls. With
/// `allow_zero_cost`, a call of cost 0 is decided by the state of the limits, and counts nothing.
///
/// # Waiting
///
/// With `wait`, a denied call waits in a queue until it is admitted. It is rejected as soon as it is certain that this
/// takes longer. Callers of one process and the same subjects are admitted in the order in which they came. Waiting needs a tokio
/// runtime with time enabled. A call that is dropped while it waits counts nothing.
///
/// # Refunds
///
/// `refund_if` is a path or a closure, `Fn(&T) -> bool` for a function whose result is `T`; the body may have consumed the
/// arguments. If it returns true for the result, exactly the hits of this call are removed: `Result::is_ok` counts only
/// failures, such as wrong passwords, and `Result::is_err` does not charge for a failure. Until then the call counts, so no
/// window ever admits more than its `count` at once. A refunded call does not make the next one a duplicate.
///
/// `prevent_duplicate(release_if = Result::is_err)` releases the duplicates alone: a submission that has failed may be
/// repeated at once, and the other rules still count it. Its rule has a tally of its own then, even beside rules of the same
/// `key`. With `key = "{*:debug:hash}"`, only a submission with the same arguments is a duplicate.
///
/// A future that is dropped, or a body that panics, is not refunded. If the backend does not answer, the function still
/// returns its result, the call stays counted, and the log reports it. The result is kept during the refund, so the future
/// is `Send` only if the result is.
///
/// # Settling
///
/// `settle` is a path or a closure, `Fn(&T) -> u64` for a function whose result is `T`: what the call has really used, such
/// as the tokens of a language model or bytes. The `cost` is reserved before the body runs. What was not used is given back
/// then; what was used beyond is charged beyond the limit, and the subject waits it off: see `Permit::settle`. With
/// `refund_if`, a call is refunded or else settled. What is said of a dropped future and of outages [above](#refunds) holds
/// here, too: then the call counts as its `cost`.
///
/// # Bans
///
/// After `denials` denials in any window of length `within`, the subject of the `key` is banned for `duration`: every call
/// is rejected with the kind `Banned` and counts nowhere; its `retry_after` lasts until the ban has ended and the rules
/// admit the call. Denials by any rule count, duplicates included, whatever the `key` of the rule. A denial that is retried
/// while the call waits does not. After the ban, counting starts again. `ban(…, message = "…")` is the text of a rejection
/// by the ban.
///
/// # Outages
///
/// Redis is away when it cannot be reached, or cannot decide for the moment.
///
/// | `on_outage` | while Redis is away, a call |
/// | --- | --- |
/// | `"deny"` | is rejected with the kind `Unavailable` |
/// | `"local"` | is decided by this process alone, by the same rules and by what it has admitted itself in outages |
/// | `"allow"` | is admitted and not counted, unless its limit is closed by a count of 0 |
///
/// With `"local"`, counts are divided by `LimiterBuilder::processes` and rounded up. A mistake in the set-up, such as a wrong
/// password, admits no call, whatever is set. A call that has no answer at the `deadline` goes by `on_outage`, too; it may
/// have been counted in Redis.
///
/// # Warnings
///
/// `warn_at = 0.8` is a soft limit: a subject is near the limit of a rule once it has used that share of its `count`. The
/// call is admitted. `LimiterBuilder::on_warning` is called once when a subject comes near a limit; log and metrics show it.
///
/// # Shadow
///
/// With `shadow`, calls are decided and counted as usual, but none is rejected, not even if the backend does not answer.
/// A call that would be rejected appears in the log (`denied in shadow`) and in the metrics (outcome `shadow`). It counts
/// towards a `ban`, and otherwise not.
///
/// # Policies
///
/// `policy` is an expression over the arguments that is, or derefs to, a `Policy`: a static `LazyLock<Policy>`, a field of
/// `self`, `policy.with_counts([calls])`. Functions of one policy share its tallies. `key`, `message`, `cost` and the other
/// arguments that are not part of a policy stand beside it.
///
/// A policy may have rules on further subjects, which `PolicyBuilder::rule_on` labels. `subject("network", "{ip:subnet}")`
/// gives the key of the subject with that label. If a label of the policy is missing, or the policy lacks one of the given
/// labels, each call is rejected with the kind `Unavailable`, whose source names the label.
///
/// # Companions
///
/// With `check_fn = send_code_limit`, the attribute also generates a function of that name. It has the visibility, receiver,
/// generics and arguments of the limited function, and returns the `Check` of such a call, for the same limiter, policy,
/// subjects, counts and cost. So administration needs no second copy of the rules:
///
/// ```text
/// send_code_limit(phone).peek().report().await?; // where the limits stand
/// send_code_limit(phone).reset().await?;         // forgets the calls of the subject
/// send_code_limit(phone).unban().await?;
/// ```
///
/// The body does not run. A `Check` that is awaited as it is counts a call. `skip_if`, `wait`, `refund_if`, `settle`,
/// `release_if`, `shadow` and the messages have no effect on it: its own methods set such options, and its permit is refunded
/// or settled by hand. If it cannot be decided, awaiting it is an error.
///
/// In an implementation of a trait, the trait has to declare the companion, as a function that returns `Check<'static>`.
///
/// # Names
///
/// Functions whose policies have the same name share their tallies. Without a `name`, a policy has the path of its
/// function, like `shop.sms.send_code` or `shop.sms.Sender.send_code`; all instances of a generic function have the same
/// one. That path changes when the function moves, and the compiler decides how it writes methods of traits and of generic
/// types. Give a `name` to a policy whose tallies have to survive such changes, to each of two functions with the same name
/// within one function, and to each of two attributes of one function.
///
/// # OpenAPI
///
/// With `openapi = SendCodeLimits`, and the feature `utoipa` of `tallygate`, the attribute also generates a type of that name
/// and of the function's visibility. It is `utoipa::IntoResponses`: the responses 429, with the limits in words for clients in
/// its description, 409 if duplicates are prevented, and 503. It works on free functions, as no type can be declared among
/// methods. With a `policy` that is a path, the rules are those of that policy; with any other expression, they are not known.
///
/// ```text
/// #[utoipa::path(post, path = "/codes", responses((status = 200, description = "sent"), SendCodeLimits))]
/// #[rate_limit(key = "{@ip}", rule(count = 5, per = "60s"), openapi = SendCodeLimits)]
/// async fn send_code() -> Result<(), Rejection> { … }
/// ```
///
/// # The function
///
/// It is an `async fn`, free or a method, or a function that ends with an async block: one that returns `impl Future` or
/// `Pin<Box<dyn Future>>`, or that `#[async_trait]` has rewritten. Its result implements `FromRejection`, as every
/// `Result<T, E>` with `E: From<Rejection>` does, also `Result<T, Rejection>`; for other types, `reject` makes the result.
/// With the feature `axum` or `actix` of `tallygate`, a handler may return the framework's response, and also
/// `impl IntoResponse` or `impl Responder` without `reject`: a rejected call is answered with problem details then.
/// Everything else stays as it is: the body, the attributes, and whether the future is `Send`. Only `refund_if`, `settle`,
/// `release_if`, and a result that is `impl IntoResponse` or `impl Responder`, put the body into an async block of its own.
///
/// The limits are added to the documentation of the function, under the heading "Rate limits".
///
/// # Errors
///
/// A mistake in the attribute is a compile error at its place that says what to write instead: rules that are missing,
/// contradictory or without effect, arguments that are unknown or repeated, placeholders that name no argument. All
/// mistakes are reported at once, and the function itself stays unchanged.
///
/// The compiler checks the types of expressions, and the fields and methods in placeholders. For a misspelt field it
/// underlines the whole template, because stable Rust gives macros no places within a text. Where it suggests another name,
/// replace the field, and not the template.
#[cfg(not(fuzzing))]
#[proc_macro_attribute]
pub fn rate_limit(attribute: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let expansion = pipeline::limit(attribute.into(), &item.into());
    debug::print(&expansion);
    expansion.into()
}
