//! How the count of a call is corrected once the result of its body is known.

use std::future::Future;

use crate::decision::{Permit, report_settlement};
use crate::error::BackendError;
use crate::observe::log;

/// How the count of a call is corrected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correction {
    /// Its permit is refunded.
    Refund,
    /// It is refunded on the subject of that label, or on the main one.
    RefundOn(Option<&'static str>),
    /// The call has used that much.
    Settle(u64),
}

/// Refunds the permit of a body with that result, if it is to be.
pub fn refund_if<T>(result: &T, refund_if: impl FnOnce(&T) -> bool) -> Option<Correction> {
    refund_if(result).then_some(Correction::Refund)
}

/// Refunds it on the subject of that label, or on the main one, if it is to be.
pub fn refund_on<T>(label: Option<&'static str>, result: &T, refund_if: impl FnOnce(&T) -> bool) -> Option<Correction> {
    refund_if(result).then_some(Correction::RefundOn(label))
}

/// Settles it by what a body with that result has used.
#[allow(clippy::unnecessary_wraps, reason = "one of several corrections")]
pub fn settle<T>(result: &T, used: impl FnOnce(&T) -> u64) -> Option<Correction> {
    Some(Correction::Settle(used(result)))
}

/// Makes the first of these corrections, if there is one. The body has run: a failure is only reported to the log.
pub fn finish<const N: usize>(
    permit: Option<Permit>,
    corrections: [Option<Correction>; N],
) -> impl Future<Output = ()> + use<N> {
    let first = corrections.into_iter().flatten().next();
    // Boxed, so that the future of an annotated function does not carry it.
    let correcting = permit.zip(first).map(|(permit, correction)| Box::pin(correct(permit, correction)));
    async move {
        if let Some(correcting) = correcting {
            correcting.await;
        }
    }
}

/// Corrects a call that is running until the body of its response is over. Returns what keeps it running.
pub async fn finish_holding<const N: usize>(
    permit: Option<Permit>,
    corrections: [Option<Correction>; N],
) -> Option<Permit> {
    let (counted, running) = permit?.split();
    finish(Some(counted), corrections).await;
    Some(running)
}

/// Corrects the counts of a call of a function that is not async.
pub fn blocking_finish<const N: usize>(permit: Option<Permit>, corrections: [Option<Correction>; N]) {
    let Some((permit, correction)) = permit.zip(corrections.into_iter().flatten().next()) else { return };
    let Some(policy) = permit.policy().cloned() else { return };
    let corrected = match correction {
        Correction::Refund => permit.blocking_refund(),
        Correction::RefundOn(label) => permit.blocking_refund_subject(label),
        Correction::Settle(used) => permit.blocking_settle(used),
    };
    report(policy.name(), correction, corrected);
}

async fn correct(permit: Permit, correction: Correction) {
    let Some(policy) = permit.policy().cloned() else { return };
    let corrected = match correction {
        Correction::Refund => permit.refund().await,
        Correction::RefundOn(label) => permit.refund_subject(label).await,
        Correction::Settle(used) => permit.settle(used).await,
    };
    report(policy.name(), correction, corrected);
}

fn report(policy: &str, correction: Correction, corrected: Result<bool, BackendError>) {
    match (correction, corrected) {
        (Correction::Settle(_), settled) => report_settlement(policy, settled),
        (_, Err(error)) => log::not_refunded(policy, &error),
        _ => {}
    }
}
