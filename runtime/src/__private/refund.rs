//! What is refunded or settled once the result of a body is known.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use crate::decision::Permit;
use crate::error::BackendError;
use crate::observe::log;

/// What is due for a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Its refund.
    Refund,
    /// Its refund on the subject of that label.
    RefundOn(&'static str),
    /// Its settlement.
    Settle(u64),
}

/// Returns whether the permit of a body with that result is to be refunded.
pub fn refund_if<T>(result: &T, refund_if: impl FnOnce(&T) -> bool) -> Option<Due> {
    refund_if(result).then_some(Due::Refund)
}

/// Returns whether it is to be refunded on the subject of that label.
pub fn release_if<T>(label: &'static str, result: &T, release_if: impl FnOnce(&T) -> bool) -> Option<Due> {
    release_if(result).then_some(Due::RefundOn(label))
}

/// Returns what a body with that result has used.
#[allow(clippy::unnecessary_wraps, reason = "one of several things that may be due")]
pub fn settle<T>(result: &T, used: impl FnOnce(&T) -> u64) -> Option<Due> {
    Some(Due::Settle(used(result)))
}

/// What is being done for a permit, if there is something.
#[must_use = "it is done when it is awaited"]
pub struct Doing(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

/// Does the first of what is due for a permit, if there is one. The body has run: a failure is only reported to the log.
pub fn finish<const N: usize>(permit: Option<Permit>, due: [Option<Due>; N]) -> Doing {
    let due = due.into_iter().flatten().next();
    let doing = |(permit, due)| -> Pin<Box<dyn Future<Output = ()> + Send>> { Box::pin(finish_permit(permit, due)) };
    Doing(permit.zip(due).map(doing))
}

async fn finish_permit(permit: Permit, due: Due) {
    let Some(policy) = permit.policy().cloned() else { return };
    let refunded = match due {
        Due::Refund => permit.refund().await,
        Due::RefundOn(label) => permit.refund_on(label).await,
        Due::Settle(used) => return report_settlement(policy.name(), permit.settle(used).await),
    };
    if let Err(error) = refunded {
        log::not_refunded(policy.name(), &error);
    }
}

/// Reports a settlement that has failed: what was used beyond the cost is never counted.
fn report_settlement(policy: &str, settled: Result<bool, BackendError>) {
    /// Whether the last settlement of this process has failed.
    static FAILING: AtomicBool = AtomicBool::new(false);
    let was_failing = FAILING.swap(settled.is_err(), Ordering::Relaxed);
    if let Err(error) = settled {
        log::not_settled(policy, &error, !was_failing);
    }
}

impl Future for Doing {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().map_or(Poll::Ready(()), |doing| doing.as_mut().poll(context))
    }
}

impl fmt::Debug for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doing").finish_non_exhaustive()
    }
}
