//! The context of a task. A future has it while it is polled.

#[cfg(feature = "web")]
use std::any::Any;
use std::future::Future;
use std::mem;
#[cfg(feature = "web")]
use std::sync::Arc;

use super::values::{Context, Listener};
use crate::decision::{Charge, Decision, Recount, Rejection};
use crate::observe;
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
pub(crate) fn enter<T>(context: &mut Context, call: impl FnOnce() -> T) -> T {
    if let Some(outer) = Context::current() {
        *context = mem::take(context).within(Some(outer));
    }
    CURRENT.sync_scope(Some(context.clone()), call)
}

/// Runs a future in the current context, whose listeners do not hear of the calls in it.
#[cfg(feature = "client")]
pub(crate) async fn unheard<F: Future>(future: F) -> F::Output {
    if observe::has_listeners() && Context::current().is_some() {
        // Boxed, as few calls are made in a request that has listeners.
        Box::pin(scope(Context::new().unheard(), future)).await
    } else {
        future.await
    }
}

/// Carries the current context with a future into a spawned task.
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

/// Carries the current context with a function to another thread: for `tokio::task::spawn_blocking`,
/// `std::thread::spawn`, `rayon::spawn` and other pools.
///
/// For a function that runs many times, as in an iterator of rayon, take [`Context::current`] first and pass a clone of
/// it to [`scope_fn`] in each run.
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

pub(super) fn with<T>(read: impl FnOnce(&Context) -> T) -> Option<T> {
    CURRENT.try_with(|context| context.as_ref().map(read)).ok().flatten()
}

pub(super) fn read<T>(name: &str, read: impl FnOnce(&str) -> T) -> Option<T> {
    with(|context| context.get(name).map(read)).flatten()
}

/// Returns the operator of the current context, who makes changes in it.
pub(crate) fn operator() -> Option<String> {
    read("operator", str::to_owned)
}

pub(crate) fn is_within_request() -> bool {
    with(|context| context.maker().is_some()).unwrap_or(false)
}

/// Returns the text of a rejection for a response: that of the context, or else its own.
pub(crate) fn message_of(rejection: &Rejection) -> String {
    let translated = Context::current().and_then(|context| context.message_of(rejection));
    translated.unwrap_or_else(|| rejection.to_string())
}

pub(crate) fn wants_reports() -> bool {
    observe::has_listeners() && with(|context| context.hearings().any(|hearing| hearing.wants_reports)).unwrap_or(false)
}

pub(crate) fn decided(policy: &Policy, decision: &Decision) {
    tell(|listener| listener.decided(policy, decision));
}

pub(crate) fn recounted(charge: &Charge, recount: &Recount) {
    tell(|listener| listener.recounted(charge, recount));
}

/// Returns the nearest listener, around this call, of this type.
#[cfg(feature = "web")]
pub(crate) fn listener<T: Listener>() -> Option<Arc<T>> {
    let own = |listener: &Arc<dyn Listener>| (Arc::clone(listener) as Arc<dyn Any + Send + Sync>).downcast().ok();
    with(|context| context.hearings().find_map(|hearing| own(&hearing.listener))).flatten()
}

fn tell(told: impl Fn(&dyn Listener)) {
    if observe::has_listeners() {
        // Outside of a context, nothing listens.
        let _ = with(|context| context.hearings().for_each(|hearing| told(&*hearing.listener)));
    }
}
