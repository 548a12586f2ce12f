//! Meters: what a call uses of a unit is added while it runs, and settled when the call and its last meter have ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::charge::{Recount, RecountTicket, Used};
use crate::error::BackendError;
use crate::lock::lock;
use crate::observe::opaque_debug;
use crate::system::under_way::CountedTask;

/// What a call uses of one unit, such as the tokens of a stream from a language model: it is added while the call runs.
///
/// [`tallygate::meter`](crate::meter()) returns the meter of a limited function, and
/// [`Permit::meter`](crate::Permit::meter) that of a permit. Clone it, and move it into what uses the unit: a stream, a
/// task, another thread. When the call has ended and all of its meters are dropped, the call is
/// [settled](crate::Permit::settle_units) once, for what was added to each of them. That is at the end of the stream,
/// after an error, or when the client has disconnected. A concurrency limit lets go of the call when the call itself ends.
///
/// In Redis, a task settles the call shortly after the last drop. The limits of a settlement apply. If it fails, the call
/// counts as its cost, and the log [has a warning](crate::guide::observability). Without a runtime, the thread with the last
/// drop waits for the answer. [`Limiter::drain`](crate::Limiter::drain) waits for meters.
///
/// A refund of the call removes it from all counts, and what is added afterwards does not count. Nothing is settled for a
/// call that nobody has counted, either: it was skipped or denied in shadow, or Redis was away under `on_outage = "allow"`.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tallygate::{Limiter, Policy, Rule, Subject};
///
/// let minute = Duration::from_secs(60);
/// let policy = Policy::builder("chat")
///     .rule(Rule::sliding_window(60, minute))
///     .rule(Rule::sliding_window(1_000, minute).counting("tokens"))
///     .build()?;
/// let (limiter, alice) = (Limiter::in_memory(), Subject::of("alice"));
///
/// let mut permit = limiter.check(&policy, &alice).cost_of("tokens", 500).refundable().await?.into_result()?;
/// let tokens = permit.meter("tokens")?;
/// let mut answer = ["Once", "upon", "a", "time"].into_iter().inspect(move |_| tokens.add(1));
/// drop(permit); // The call has ended.
/// assert_eq!(answer.next(), Some("Once"));
/// assert_eq!(limiter.peek(&policy, &alice).await?.report()[1].used(), 500);
///
/// drop(answer); // The client has gone.
/// assert_eq!(limiter.peek(&policy, &alice).await?.report()[1].used(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "what is not added to a meter counts for nothing"]
pub struct Meter {
    metering: Arc<Metering>,
    /// `None` for calls.
    unit: Option<Arc<str>>,
}

impl Meter {
    /// Adds to what the call has used.
    pub fn add(&self, used: u64) {
        lock(&self.metering.used).add(self.unit.as_ref(), used);
    }

    /// Returns what the call has used so far, by all meters of this unit.
    #[must_use]
    pub fn used(&self) -> u64 {
        lock(&self.metering.used).of(self.unit.as_ref()).unwrap_or_default()
    }
}

opaque_debug!(Meter, meter => { unit: meter.unit, used: meter.used() });

/// What the meters of a call have counted. It is shared by the call and its meters: the last one settles the call.
pub(crate) struct Metering {
    /// `None` if nobody has counted the call.
    ticket: Option<Box<RecountTicket>>,
    used: Mutex<Used>,
    /// What a settlement says, which holds whatever the meters count.
    said: Mutex<Used>,
    /// Whether the ticket was used: the call is refunded or settled.
    is_over: AtomicBool,
    /// Dropped last, so that `drain` always counts either this or the settlement in the background.
    _counted: Option<CountedTask>,
}

impl Metering {
    pub(super) fn new(ticket: Option<Box<RecountTicket>>) -> Self {
        let counted = ticket.as_ref().and_then(|ticket| ticket.begin_metering());
        Self {
            ticket,
            used: Mutex::default(),
            said: Mutex::default(),
            is_over: AtomicBool::new(false),
            _counted: counted,
        }
    }

    pub(super) fn ticket(&self) -> Option<&RecountTicket> {
        self.ticket.as_deref()
    }

    /// Fails if the policy of the call has no such unit.
    pub(super) fn check_unit(&self, unit: &str) -> Result<(), BackendError> {
        self.ticket.as_ref().map_or(Ok(()), |ticket| ticket.charge.call.policy.unit(unit).map(drop))
    }

    /// Returns a meter. From now on, the call is settled for what is added of that unit.
    pub(crate) fn meter(self: &Arc<Self>, unit: Option<Arc<str>>) -> Meter {
        lock(&self.used).add(unit.as_ref(), 0);
        Meter { metering: Arc::clone(self), unit }
    }

    /// Takes the ticket of the call; `None` the second time.
    pub(super) fn take_ticket(&self) -> Option<Box<RecountTicket>> {
        let ticket = self.ticket.as_ref()?;
        (!self.is_over.swap(true, Ordering::AcqRel)).then(|| ticket.clone())
    }

    /// Returns the settlement for what was used, as it is said or else as it was metered. While the call has a meter, that is
    /// `None`: the last one settles the call.
    pub(super) fn settlement(self: Arc<Self>, said: Used) -> Option<(Box<RecountTicket>, Recount)> {
        *lock(&self.said) = said;
        Arc::into_inner(self)?.settle()
    }

    fn settle(&self) -> Option<(Box<RecountTicket>, Recount)> {
        let mut used = lock(&self.used).clone();
        used.replace(lock(&self.said).clone());
        if used.is_empty() {
            // No meter was asked for: the call counts as its cost.
            return None;
        }
        Some((self.take_ticket().filter(|ticket| ticket.is_counted())?, Recount::Settle(used)))
    }
}

impl Drop for Metering {
    fn drop(&mut self) {
        if let Some((ticket, recount)) = self.settle() {
            ticket.settle_unawaited(recount);
        }
    }
}
