//! Corrects the count of a call when the result of its body is known.

use std::future::Future;

use tallygate_rules::CALLS;

pub use crate::decision::Correction;
use crate::decision::{Permit, report_settlement};
use crate::error::BackendError;
use crate::observe::log;

/// A correction of a call by the result of its body.
type DueCorrection = Correction<'static>;

/// What `settle` says that a call has used: an amount, or `None` if the call stays counted as its cost.
#[diagnostic::on_unimplemented(
    message = "`settle` returns `{Self}`, which is not what a call has used",
    label = "expected `u64` or `Option<u64>`",
    note = "`None` leaves the call counted as its cost"
)]
pub trait AmountUsed {
    /// Returns the amount, if there is one.
    fn amount(self) -> Option<u64>;
}

impl AmountUsed for u64 {
    fn amount(self) -> Option<u64> {
        Some(self)
    }
}

impl AmountUsed for Option<u64> {
    fn amount(self) -> Option<u64> {
        self
    }
}

/// Returns a refund if `refund_if` holds for the result.
pub fn refund_if<T>(result: &T, refund_if: impl FnOnce(&T) -> bool) -> Option<DueCorrection> {
    refund_if(result).then_some(Correction::Refund)
}

/// Returns a refund on the subject of that label, or on the main one, if `refund_if` holds for the result.
pub fn refund_on<T>(
    label: Option<&'static str>,
    result: &T,
    refund_if: impl FnOnce(&T) -> bool,
) -> Option<DueCorrection> {
    refund_if(result).then_some(Correction::RefundOn(label))
}

/// Returns a settlement for what the call has used by its result.
pub fn settle<T, U: AmountUsed>(result: &T, used_by: impl FnOnce(&T) -> U) -> Option<DueCorrection> {
    settle_units([used(CALLS, result, used_by)])
}

/// Returns what the call has used of a unit by its result.
pub fn used<T, U: AmountUsed>(
    unit: &'static str,
    result: &T,
    used_by: impl FnOnce(&T) -> U,
) -> Option<(&'static str, u64)> {
    Some((unit, used_by(result).amount()?))
}

/// Returns a settlement for what the call has used of all units.
#[must_use]
pub fn settle_units<const N: usize>(used: [Option<(&'static str, u64)>; N]) -> Option<DueCorrection> {
    let used: Vec<_> = used.into_iter().flatten().collect();
    (!used.is_empty()).then_some(Correction::Settle(used.into()))
}

/// Returns a settlement for what the call has metered, and used of other units.
#[allow(clippy::unnecessary_wraps, reason = "one of several corrections")]
#[must_use]
pub fn settle_metered<const N: usize>(used: [Option<(&'static str, u64)>; N]) -> Option<DueCorrection> {
    Some(Correction::Settle(used.into_iter().flatten().collect::<Vec<_>>().into()))
}

/// Makes the first correction, if there is one. The body has run, so a failure is only logged.
pub fn finish<const N: usize>(
    permit: Option<Permit>,
    corrections: [Option<DueCorrection>; N],
) -> impl Future<Output = ()> + use<N> {
    let first = corrections.into_iter().flatten().next();
    // A box keeps the correction out of the future of an annotated function.
    let correcting = permit.zip(first).map(|(permit, correction)| Box::pin(correct(permit, correction)));
    async move {
        if let Some(correcting) = correcting {
            correcting.await;
        }
    }
}

/// Corrects a call that is running until the body of its response is over. Returns the permit that keeps it running.
pub async fn finish_holding<const N: usize>(
    permit: Option<Permit>,
    corrections: [Option<DueCorrection>; N],
) -> Option<Permit> {
    let (counted, running) = permit?.split();
    finish(Some(counted), corrections).await;
    Some(running)
}

/// Corrects the counts of a call of a function that is not async.
pub fn blocking_finish<const N: usize>(permit: Option<Permit>, corrections: [Option<DueCorrection>; N]) {
    let Some((permit, correction)) = permit.zip(corrections.into_iter().flatten().next()) else { return };
    let Some(policy) = permit.policy().cloned() else { return };
    report(policy.name(), &correction, permit.blocking_correct(&correction));
}

async fn correct(permit: Permit, correction: DueCorrection) {
    let Some(policy) = permit.policy().cloned() else { return };
    report(policy.name(), &correction, permit.correct(&correction).await);
}

fn report(policy: &str, correction: &DueCorrection, corrected: Result<bool, BackendError>) {
    match (correction, corrected) {
        (Correction::Settle(_), settled) => report_settlement(policy, settled),
        (_, Err(error)) => log::not_refunded(policy, &error),
        _ => {}
    }
}
