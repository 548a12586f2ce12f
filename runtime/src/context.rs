//! Values of a call beside its arguments, such as the address of the client. `{@name}` shows them.
//!
//! A function deep inside a request rarely has the address of the client or the user among its arguments. A key or a
//! message shows such a value with an `@`:
//!
//! ```
//! use std::time::Duration;
//! use tallygate::context::{self, Context};
//! use tallygate::{BackendError, Decision, Limiter, Policy, Rule};
//!
//! async fn check(limiter: &Limiter, policy: &Policy, user: &str) -> Result<Decision, BackendError> {
//!     let subject = limiter.subject().context("ip").text(":").value(user).build();
//!     limiter.check(policy, &subject).await
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let limiter = Limiter::in_memory();
//! let policy = Policy::builder("code").rule(Rule::sliding_window(1, Duration::from_secs(60))).build()?;
//! let context = Context::new().with("ip", "192.0.2.1");
//! assert!(context::scope(context.clone(), check(&limiter, &policy, "alice")).await?.is_allowed());
//! assert!(!context::scope(context, check(&limiter, &policy, "alice")).await?.is_allowed());
//! # Ok(())
//! # }
//! ```
//!
//! The layer of the module `web`, a feature of this crate, does this for each request of a web server.
//!
//! # Where a context applies
//!
//! It holds in the future that [`scope`] returns, and in everything that this future awaits. It does not hold in a task
//! that it spawns, unless the future of the task is [carried](carry), nor on another thread, as in `spawn_blocking`, unless
//! the function is [carried](carry_fn), nor in a stream that is polled after the future has ended, such as the body of a
//! response. [`scope_fn`] calls a function in a context. A placeholder is rendered when the future of the call is first polled. So
//! a call that is made in a context and awaited by another task has the values of that task.
//!
//! Scopes can be nested: an inner context adds its values to those around it, and takes precedence.
//!
//! # Who changes something
//!
//! Where the context has the value `operator`, the log shows it as `operator` behind what is changed within it: overrides, bans,
//! resets, and files that are applied.
//!
//! # A value that is missing
//!
//! A call whose key shows a value that its context lacks is never admitted. If the layer around it looks for that value, or the
//! program has [declared](declare) it, this call lacks what others have, such as a user: it is rejected as
//! [`Unidentified`](crate::RejectionKind::Unidentified), and a web server answers with the status 401. An alternative in the key,
//! `{@user|@ip}`, limits such calls by something else.
//!
//! If no call can have the value, or the call is made without a context, this is a [mistake in the
//! program](crate::BackendErrorKind::Misuse): the call is rejected as [`Unavailable`](crate::RejectionKind::Unavailable), and a web
//! server answers with the status 500. The source of the rejection names the value and the remedy, and so does the log, once for
//! each limited function.
//!
//! A message shows nothing in place of a missing value, and the log has a warning, once.

mod declared;
mod placeholder;
mod scope;
mod template;
#[cfg(test)]
mod tests;
mod values;

pub use self::declared::declare;
pub(crate) use self::declared::{
    found_by_layer, has_layers, is_of_requests, is_unknown, known_value_meant, layer_made, value_meant,
};
pub(crate) use self::placeholder::{push, push_filtered, push_tagged, refuse_missing, show};
pub use self::scope::{carry, carry_fn, scope, scope_fn};
pub(crate) use self::scope::{decided, enter, is_within_request, message_of, operator, recounted, wants_reports};
pub(crate) use self::template::ContextKey;
pub use self::values::Context;
pub(crate) use self::values::{Listener, Maker, Messages};
