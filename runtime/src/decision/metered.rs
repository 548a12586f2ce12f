//! A permit that counts what its call uses, and is settled for that when it is dropped.

use super::charge::Used;
use super::permit::Permit;
use super::settlement::report_settlement;
use crate::error::BackendError;
use crate::observe::opaque_debug;

/// A permit that counts what its call uses. When it is dropped, it is [settled](Permit::settle) for that.
///
/// Use it for calls whose use is only known at their end, such as a stream of tokens from a language model. Move it
/// into the stream: it is dropped with the stream, at its end, after an error, or when the client disconnects. Under a
/// concurrency limit, the call runs until then.
///
/// In Redis, a task settles it shortly after the drop. The limits of a settlement apply. If it fails, the call counts
/// as its cost, and the log [has a warning](crate::guide::observability). Without a runtime, the thread that drops it
/// waits for the answer. If the runtime ends right after the drop, the call counts as its cost.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tallygate::{Limiter, Policy, Rule, Subject};
///
/// let (limiter, alice) = (Limiter::in_memory(), Subject::of("alice"));
/// let policy = Policy::builder("tokens").rule(Rule::sliding_window(1_000, Duration::from_secs(60))).build()?;
///
/// let permit = limiter.check(&policy, &alice).cost(500).refundable().await?.into_result()?;
/// let mut tokens = permit.metered()?;
/// let mut answer = ["Once", "upon", "a", "time"].into_iter().inspect(move |_| tokens.add(1));
/// assert_eq!(answer.next(), Some("Once"));
/// assert_eq!(limiter.peek(&policy, &alice).await?.report()[0].remaining(), 500);
///
/// drop(answer); // The client has gone.
/// assert_eq!(limiter.peek(&policy, &alice).await?.report()[0].remaining(), 999);
/// # Ok(())
/// # }
/// ```
#[must_use = "when it is dropped, the call is settled for what it has used until then"]
pub struct Metered {
    /// `None` once it is settled.
    permit: Option<Permit>,
    used: u64,
}

impl Permit {
    /// Returns a permit that counts what the call uses, starting at 0, and is settled for that sum when it is dropped.
    ///
    /// # Errors
    ///
    /// The permit cannot be settled, as in [`settle`](Self::settle): the call was not
    /// [`refundable`](crate::Check::refundable), or has reserved nothing. It is dropped, and the call counts as its cost.
    pub fn metered(self) -> Result<Metered, BackendError> {
        self.check_can_be_settled()?;
        Ok(Metered { permit: Some(self), used: 0 })
    }
}

impl Metered {
    /// Adds to what the call has used.
    pub fn add(&mut self, used: u64) {
        self.used = self.used.saturating_add(used);
    }

    /// Returns what the call has used so far.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Settles now, as [`Permit::settle`] does, and returns whether that has changed anything.
    ///
    /// # Errors
    ///
    /// Fails as [`Permit::settle`] does.
    pub async fn settle(mut self) -> Result<bool, BackendError> {
        match self.permit.take() {
            Some(permit) => permit.settle(self.used).await,
            None => Ok(false),
        }
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        let settlement =
            self.permit.take().map(|permit| permit.into_settlement(Used { calls: Some(self.used), ..Used::default() }));
        // `metered` has checked that the permit can be settled.
        let Some(Ok(Some((ticket, recount)))) = settlement else { return };
        let policy = ticket.charge.call.policy.clone();
        ticket.recount_unawaited(recount, move |settled| report_settlement(policy.name(), settled));
    }
}

opaque_debug!(Metered, metered => { used: metered.used });
