//! The context of a task, which its futures have while they are polled.

use std::future::Future;
#[cfg(feature = "web")]
use std::mem;

#[cfg(feature = "web")]
use super::decisions::Decisions;
use super::values::Context;
#[cfg(feature = "web")]
use crate::decision::{Charge, Decision, Recount, Rejection};
#[cfg(feature = "web")]
use crate::policy::Policy;

tokio::task_local! {
    /// `None` in a future that was carried from outside of any context.
    static CURRENT: Option<Context>;
}

/// Runs a future in a context. Its values are added to those of the context around it when the future is first polled.
///
/// # Examples
///
/// ```
/// use tallygate::context::{self, Context};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let user = || Context::current().and_then(|context| context.get("user").map(str::to_owned));
/// let shown = context::scope(Context::new().with("user", "alice"), async { user() }).await;
/// assert_eq!((shown.as_deref(), user()), (Some("alice"), None));
/// # }
/// ```
pub async fn scope<F: Future>(context: Context, future: F) -> F::Output {
    let context = context.within(Context::current());
    CURRENT.scope(Some(context), future).await
}

/// Calls a function in a context, on this thread. Its values are added to those of the context around it.
///
/// # Examples
///
/// ```
/// use tallygate::context::{self, Context};
/// use tallygate::{Rejection, rate_limit};
///
/// #[rate_limit(key = "{@ip}", rule(count = 1, per = "60s"))]
/// fn report() -> Result<(), Rejection> {
///     Ok(())
/// }
///
/// let client = Context::new().with("ip", "192.0.2.1");
/// assert!(context::scope_fn(client.clone(), report).is_ok());
/// assert!(context::scope_fn(client, report).is_err());
/// ```
pub fn scope_fn<T>(context: Context, call: impl FnOnce() -> T) -> T {
    let context = context.within(Context::current());
    CURRENT.sync_scope(Some(context), call)
}

/// Calls a function in a context. The first time, the context is placed inside the current one.
#[cfg(feature = "web")]
pub(crate) fn enter<T>(context: &mut Context, call: impl FnOnce() -> T) -> T {
    if let Some(outer) = Context::current() {
        *context = mem::take(context).within(Some(outer));
    }
    CURRENT.sync_scope(Some(context.clone()), call)
}

/// Takes the current context along with a future, into a spawned task.
///
/// # Examples
///
/// ```
/// use tallygate::context::{self, Context};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// async fn send() -> bool {
///     Context::current().is_some()
/// }
///
/// let request = async {
///     let forgets = tokio::spawn(send());
///     let knows = tokio::spawn(context::carry(send()));
///     (forgets.await, knows.await)
/// };
/// let (forgets, knows) = context::scope(Context::test(), request).await;
/// assert!(!forgets? && knows?);
/// # Ok(())
/// # }
/// ```
pub fn carry<F: Future>(future: F) -> impl Future<Output = F::Output> + use<F> {
    CURRENT.scope(Context::current(), future)
}

/// Takes the current context along with a function, to another thread: for `tokio::task::spawn_blocking`,
/// `std::thread::spawn`, `rayon::spawn` and other pools.
///
/// A function that runs many times, as of an iterator of rayon, takes a clone of [`Context::current`] into [`scope_fn`].
///
/// # Examples
///
/// ```
/// use tallygate::context::{self, Context};
/// use tokio::task::spawn_blocking;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// fn report() -> bool {
///     Context::current().is_some()
/// }
///
/// let request = async { (spawn_blocking(report).await, spawn_blocking(context::carry_fn(report)).await) };
/// let (forgets, knows) = context::scope(Context::test(), request).await;
/// assert!(!forgets? && knows?);
/// # Ok(())
/// # }
/// ```
pub fn carry_fn<T>(call: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let context = Context::current();
    move || CURRENT.sync_scope(context, call)
}

impl Context {
    /// Returns the current context, if there is one.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok().flatten()
    }
}

/// Reads a value of the current context.
pub(super) fn read<T>(name: &str, read: impl FnOnce(&str) -> T) -> Option<T> {
    CURRENT.try_with(|context| context.as_ref()?.get(name).map(read)).ok().flatten()
}

/// Returns the name of the operator who makes changes here, if the current context has it.
pub(crate) fn operator() -> Option<String> {
    read("operator", str::to_owned)
}

/// Returns whether the current context was made for a request.
#[cfg(feature = "web")]
pub(crate) fn is_within_request() -> bool {
    CURRENT.try_with(|context| context.as_ref().is_some_and(|context| context.maker().is_some())).unwrap_or(false)
}

/// Returns whether the current context collects decisions with reports on all rules.
#[cfg(feature = "web")]
pub(crate) fn collects_reports() -> bool {
    let collects = |context: &Context| context.collections().any(|collection| collection.wants_reports);
    CURRENT.try_with(|context| context.as_ref().is_some_and(collects)).unwrap_or(false)
}

/// Returns the text of a rejection for a response.
#[cfg(feature = "web")]
pub(crate) fn message_of(rejection: &Rejection) -> String {
    let translated = Context::current().and_then(|context| context.message_of(rejection));
    translated.unwrap_or_else(|| rejection.to_string())
}

/// Adds a decision to what the current context collects.
#[cfg(feature = "web")]
pub(crate) fn record_decision(policy: &Policy, decision: &Decision) {
    record(|decisions| decisions.add(policy, decision));
}

/// Adds a refund or a settlement.
#[cfg(feature = "web")]
pub(crate) fn record_recount(charge: &Charge, recount: Recount) {
    record(|decisions| decisions.recount(charge, recount));
}

#[cfg(feature = "web")]
fn record(record: impl Fn(&Decisions)) {
    // Outside of a context there is nothing to record.
    let _ = CURRENT.try_with(|context| {
        context.iter().flat_map(Context::collections).for_each(|collection| record(&collection.decisions));
    });
}
