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
//! that it spawns, unless the future of the task is [carried](carry), nor in a stream that is polled after the future
//! has ended, such as the body of a response. A placeholder is rendered when the future of the call is first polled. So
//! a call that is made in a context and awaited by another task has the values of that task.
//!
//! Scopes can be nested: an inner context adds its values to those around it, and takes precedence.
//!
//! # A value that is missing
//!
//! A call whose key shows a value that its context lacks, or that is made without a context, is rejected as
//! [`Unavailable`](crate::RejectionKind::Unavailable). The source of the rejection names the value and the remedy, and
//! so does the log, once for each limited function. This is a [mistake in the
//! program](crate::BackendErrorKind::Misuse), so a web server answers with the status 500. A message shows nothing in
//! place of a missing value, and the log has a warning, once.

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
pub(crate) use self::placeholder::{push, push_filtered, push_tagged, refuse_missing, show};
pub use self::scope::{carry, scope};
#[cfg(feature = "web")]
pub(crate) use self::scope::{collects_reports, enter, is_within_request, message_of, record_decision, record_recount};
#[cfg(feature = "web")]
pub(crate) use self::template::ContextKey;
pub use self::values::Context;
#[cfg(feature = "web")]
pub(crate) use self::values::{Maker, Messages};
