//! Recounts the calls that this process has admitted while Redis was away.

use std::future::ready;
use std::sync::Arc;

use super::core::Core;
use crate::decision::{Charge, Recount, Refunded, Refunder};
use crate::error::BackendError;
use crate::system::home::Runtimes;

/// Recounts what this process has admitted while Redis was away.
pub(super) struct StandbyRefunder(pub(super) Arc<Core>);

impl Refunder for StandbyRefunder {
    fn recount<'a>(&'a self, charge: &'a Charge, recount: Recount) -> Refunded<'a> {
        let is_recounted = self.0.outage.standby.recount(charge, recount);
        self.0.wake_by(charge, recount);
        Box::pin(ready(Ok(is_recounted)))
    }

    fn blocking_recount(self: Arc<Self>, charge: Charge, recount: Recount) -> Result<bool, BackendError> {
        let is_recounted = self.0.outage.standby.recount(&charge, recount);
        self.0.wake_by(&charge, recount);
        Ok(is_recounted)
    }

    fn runtimes(&self) -> Option<&Arc<Runtimes>> {
        None
    }
}
