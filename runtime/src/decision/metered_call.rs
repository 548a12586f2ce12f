//! The limited functions that run, and meter what they use: code within them asks for their meters by unit.

use std::future::Future;
use std::sync::Arc;

use super::meter::{Meter, Metering};
use super::permit::Permit;
use crate::error::BackendError;

tokio::task_local! {
    /// The innermost metered call around the code that runs.
    static INNERMOST: Arc<Surrounding>;
}

/// A metered call around the code that runs, and the one around it.
struct Surrounding {
    call: MeteredCall,
    outer: Option<Arc<Self>>,
}

/// A limited function that meters units.
pub struct MeteredCall {
    units: &'static [&'static str],
    metering: Arc<Metering>,
}

/// Meters these units of a call. Nothing is counted for a call without a permit.
pub fn metered(mut permit: Option<Permit>, units: &'static [&'static str]) -> (Option<Permit>, MeteredCall) {
    let metering = permit.as_mut().and_then(Permit::metering).cloned();
    let metering = metering.unwrap_or_else(|| Arc::new(Metering::new(None)));
    (permit, MeteredCall { units, metering })
}

impl MeteredCall {
    /// Runs the body of an async function, which may ask for meters.
    pub fn run<F: Future>(self, body: F) -> impl Future<Output = F::Output> + use<F> {
        INNERMOST.scope(self.surrounding(), body)
    }

    /// Runs the body of a function that is not async.
    pub fn run_blocking<T>(self, body: impl FnOnce() -> T) -> T {
        INNERMOST.sync_scope(self.surrounding(), body)
    }

    fn surrounding(self) -> Arc<Surrounding> {
        Arc::new(Surrounding { call: self, outer: INNERMOST.try_with(Arc::clone).ok() })
    }
}

/// Returns the meter of a unit: of the innermost limited function around this code that has `unit("…", settle = metered)`.
///
/// What is added to it counts when the function has ended, with `until = "body"` the body of its response, and all of its
/// meters are dropped. Ask for it in the function itself or in what it calls or awaits, and move it into what outlives
/// that: the stream of a body, a spawned task, another thread. A call that never asks for the meter of a unit counts as its `cost` in it.
///
/// # Errors
///
/// The code does not run within such a function, or it runs in a task, a body or a thread of its own. It is a
/// [mistake in the program](crate::BackendErrorKind::Misuse).
///
/// # Examples
///
/// ```
/// use tallygate::{Limiter, Rejection, rate_limit};
///
/// #[rate_limit(
///     name = "chat",
///     key = "{user}",
///     rule(count = 60, per = "60s"),
///     rule(count = 20_000, per = "60s", unit = "tokens"),
///     unit("tokens", cost = 500, settle = metered)
/// )]
/// async fn chat(user: &str) -> Result<impl Iterator<Item = &'static str>, Rejection> {
///     let tokens = tallygate::meter("tokens")?;
///     Ok(["Once", "upon", "a", "time"].into_iter().inspect(move |_| tokens.add(1)))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// assert_eq!(chat("alice").await?.count(), 4);
/// let policy = Limiter::policy("chat").expect("it was called");
/// let alice = tallygate::Subject::of("alice");
/// assert_eq!(Limiter::installed().peek(&policy, &alice).await?.report()[1].used(), 4);
/// # Ok(())
/// # }
/// ```
pub fn meter(unit: &str) -> Result<Meter, BackendError> {
    let innermost = INNERMOST.try_with(Arc::clone).ok();
    let mut around = innermost.as_deref();
    while let Some(Surrounding { call, outer }) = around {
        if call.units.contains(&unit) {
            return Ok(call.metering.meter(Some(Arc::from(unit))));
        }
        around = outer.as_deref();
    }
    Err(BackendError::misuse(format!(
        "no limited function around this code meters `{unit}`; write `unit({unit:?}, settle = metered)` in its attribute, and \
         ask for the meter before a body, a task or a thread outlives the function"
    )))
}
