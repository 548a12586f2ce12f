//! The limited functions that run, and the units that they declare: code within them asks for their meters by unit.

use std::future::Future;
use std::sync::Arc;

use super::meter::{Meter, Metering};
use super::permit::Permit;
use crate::error::BackendError;

tokio::task_local! {
    /// The innermost call with units around the code that runs; `None` if no call around it meters anything.
    static INNERMOST: Option<Arc<Surrounding>>;
}

/// A call with units around the code that runs, and the one around it.
struct Surrounding {
    call: MeteredCall,
    outer: Option<Arc<Self>>,
}

/// A limited function that declares units.
pub struct MeteredCall {
    /// What it meters, and the units for which it does that; `None` if for none.
    metered: Option<(Arc<Metering>, &'static [&'static str])>,
    /// The units that it declares besides.
    others: &'static [&'static str],
}

/// Meters these units of a call that also declares `others`. Nothing is counted for a call without a permit.
pub fn metered(
    mut permit: Option<Permit>,
    units: &'static [&'static str],
    others: &'static [&'static str],
) -> (Option<Permit>, MeteredCall) {
    let metering = permit.as_mut().and_then(Permit::metering).cloned();
    let metering = metering.unwrap_or_else(|| Arc::new(Metering::new(None)));
    (permit, MeteredCall { metered: Some((metering, units)), others })
}

/// Returns a call that declares these units, and meters none.
#[must_use]
pub fn unmetered(units: &'static [&'static str]) -> MeteredCall {
    MeteredCall { metered: None, others: units }
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

    fn surrounding(self) -> Option<Arc<Surrounding>> {
        let outer = innermost();
        // Without a meter around it, such a call hides none, and needs no memory.
        (self.metered.is_some() || outer.is_some()).then(|| Arc::new(Surrounding { call: self, outer }))
    }
}

fn innermost() -> Option<Arc<Surrounding>> {
    INNERMOST.try_with(Clone::clone).ok().flatten()
}

/// Returns the meter of a unit: of the innermost limited function around this code that declares the unit, with
/// `unit("…", settle = metered)`.
///
/// What is added to it counts when the function has ended, with `until = "body"` the body of its response, and all of its
/// meters are dropped. Ask for it in the function itself or in what it calls or awaits, and move it into what outlives
/// that: the stream of a body, a spawned task, another thread. A call that never asks for the meter of a unit counts
/// as its `cost` in it.
///
/// # Errors
///
/// The code does not run within such a function, or it runs in a task, a body or a thread of its own. Or the innermost
/// function that declares the unit does not meter it, or its `policy = …` has no such unit. It is a
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
    let innermost = innermost();
    let mut around = innermost.as_deref();
    while let Some(Surrounding { call, outer }) = around {
        if let Some((metering, units)) = &call.metered
            && units.contains(&unit)
        {
            metering.check_unit(unit)?;
            return Ok(metering.meter(Some(Arc::from(unit))));
        }
        if call.others.contains(&unit) {
            return Err(BackendError::misuse(format!(
                "the innermost limited function with `unit({unit:?}, …)` does not meter it; write `settle = metered` there, or \
                 pass the meter of a function around it to this code"
            )));
        }
        around = outer.as_deref();
    }
    Err(BackendError::misuse(format!(
        "no limited function around this code meters `{unit}`; write `unit({unit:?}, settle = metered)` in its attribute, and \
         ask for the meter before a body, a task or a thread outlives the function"
    )))
}
