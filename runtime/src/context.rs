//! Values of a call beside its arguments, such as the address of the client. `{@name}` shows them.
//!
//! A function deep inside a request rarely has the user or the address of the client among its arguments. With an `@`,
//! a key or a message shows such a value:
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
//! The layer of the module `web`, a feature of this crate, makes a context for each request of a web server.
//!
//! # Where a context applies
//!
//! A context applies to the future that [`scope`] returns, and to everything that this future awaits. It does not apply
//! to a spawned task unless its future is [carried](carry), nor to another thread, as in `spawn_blocking`, unless the
//! function is [carried](carry_fn). It does not apply to a stream that is polled after the future has ended, such as
//! the body of a response. [`scope_fn`] calls a function in a context. A placeholder is rendered when the future of the
//! call is first polled. So a call that is made in a context and awaited by another task has the values of that task.
//!
//! Scopes can be nested: an inner context adds its values to those around it, and takes precedence.
//!
//! # Who makes a change
//!
//! If the context has the value `operator`, the log shows it with each change that is made within the context:
//! overrides, bans, resets, and files that are applied.
//!
//! # A missing value
//!
//! A call whose key shows a value that its context lacks is never admitted. If the layer around it looks for this
//! value, or the program has [declared](declare) it, other calls have it and only this one lacks it, such as a user:
//! the call is rejected as [`Unidentified`](crate::RejectionKind::Unidentified), and a web server answers with the
//! status 401. An alternative in the key, `{@user|@ip}`, limits such calls by something else.
//!
//! If no call can have the value, or the call has no context, this is a [mistake in the
//! program](crate::BackendErrorKind::Misuse): the call is rejected as
//! [`Unavailable`](crate::RejectionKind::Unavailable), and a web server answers with the status 500. The source of the
//! rejection names the value and the remedy, and so does the log, once for each limited function.
//!
//! A message shows nothing in place of a missing value, and the log warns once.

mod declared;
#[cfg(any(feature = "web", feature = "client"))]
mod keyed_policy;
#[cfg(feature = "config")]
mod message;
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
#[cfg(any(feature = "web", feature = "client"))]
pub(crate) use self::keyed_policy::KeyedPolicy;
#[cfg(feature = "config")]
pub(crate) use self::message::ContextMessage;
pub(crate) use self::placeholder::{push, push_filtered, push_tagged, refuse_missing, show};
#[cfg(feature = "web")]
pub(crate) use self::scope::listener;
#[cfg(feature = "client")]
pub(crate) use self::scope::unheard;
pub use self::scope::{carry, carry_fn, scope, scope_fn};
pub(crate) use self::scope::{decided, enter, is_within_request, message_of, operator, recounted, wants_reports};
pub(crate) use self::template::ContextKey;
pub use self::values::Context;
#[cfg(feature = "web")]
pub(crate) use self::values::MakeResponse;
pub(crate) use self::values::{Listener, Maker, Messages};
