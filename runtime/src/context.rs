//! What a call knows beside its arguments: values such as the address of the client, which `{@name}` shows.
//!
//! The call of a function deep inside a request rarely has the client's address or the user among its arguments. A key or
//! a message names such a value with an `@`:
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
//! A web server has a layer that does this for each request: see the module `web`, a feature of this crate.
//!
//! # Where a context holds
//!
//! It holds in the future that [`scope`] returns, in all that this future awaits, and nowhere else: not in a task that it
//! spawns, unless the task's future is [carried](carry); not in a stream that is polled after the future has ended, such
//! as the body of a response. A placeholder is rendered when the future of the call is first polled, so a call that is
//! made in a context and awaited by another task has the values of that task.
//!
//! Scopes are nested: an inner context adds its values to those around it, and goes before them.
//!
//! # A value that is missing
//!
//! A call whose key shows a value that its context does not have, or that is made outside of any, is rejected with the kind
//! [`Unavailable`](crate::RejectionKind::Unavailable). The source of the rejection names the value and the remedy, and so
//! does the log, once for each limited function. It is a [mistake in the program](crate::BackendErrorKind::Misuse), so a web server
//! answers with the status 500. A message shows nothing in its place, which the log reports as a warning, once.

#[cfg(feature = "web")]
mod decisions;
mod placeholder;
mod scope;
#[cfg(feature = "web")]
mod template;
#[cfg(test)]
mod tests;
mod values;

#[cfg(feature = "web")]
pub use self::decisions::Decisions;
#[cfg(feature = "web")]
pub(crate) use self::decisions::LimitStatus;
pub(crate) use self::placeholder::{push, push_filtered, show};
pub use self::scope::{carry, scope};
#[cfg(feature = "web")]
pub(crate) use self::scope::{collects_reports, enter, is_within_request, message_of, record_decision, record_recount};
#[cfg(feature = "web")]
pub(crate) use self::template::ContextKey;
pub use self::values::Context;
#[cfg(feature = "web")]
pub(crate) use self::values::{Maker, Messages};
