//! The permits that are kept, and the calls that are over without them.

use std::time::Duration;

use tallygate::Permit;
use tallygate_harness::model::{Call, Costs, Ticket};

use super::Sequence;
use crate::model::transcript::Act;

/// The most permits that are kept to be given back.
const PERMITS: usize = 16;
/// How often the limiter is asked whether a call is over, a millisecond apart.
const PATIENCE: usize = 10_000;

impl Sequence<'_> {
    pub(super) async fn keep(&mut self, permit: Option<Permit>, ticket: Ticket) -> Result<(), String> {
        let Some(permit) = permit.filter(|_| self.keeps_permits) else { return Ok(()) };
        self.permits.push((permit, ticket));
        if self.permits.len() <= PERMITS {
            return Ok(());
        }
        let (permit, ticket) = self.permits.swap_remove(self.random.usize(..PERMITS));
        drop(permit);
        self.end(ticket).await
    }

    /// Ends the call of a permit that was dropped.
    pub(super) async fn end(&mut self, ticket: Ticket) -> Result<(), String> {
        if !ticket.is_running() {
            return Ok(());
        }
        self.model.end(&ticket);
        let plan = self.versions[0].plan.clone();
        let peek = Call { plan, subjects: ticket.subjects(), costs: Costs::all(1), report: true, peek: true };
        let expected = self.model.decide(&peek, self.now_us);
        self.transcript.note(self.now_us, Act::End(ticket));
        // In Redis it is over a moment later.
        for _ in 0..PATIENCE {
            let (answer, _) = self.answer(0, &peek).await;
            if answer == expected {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Err(format!("once a call is over, the model answers {expected:?}, and the limiter does not"))
    }
}
