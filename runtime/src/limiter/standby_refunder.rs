//! Recounts the calls that this process has admitted while Redis was away.

use std::future::ready;
use std::sync::Arc;

use super::core::Core;
use crate::decision::{Charge, Recount, Refunded, Refunder};
use crate::error::BackendError;
use crate::system::home::Runtimes;

/// Recounts what this process has admitted while Redis was away.
pub(super) struct StandbyRefunder(pub(super) Arc<Core>);

impl StandbyRefunder {
    fn recount_at_once(&self, charge: &Charge, recount: Recount) -> bool {
        let has_changed = self.0.outage.recount(charge, recount);
        self.0.finish_recount(charge, recount, has_changed);
        has_changed
    }
}

impl Refunder for StandbyRefunder {
    fn recount<'a>(&'a self, charge: &'a Charge, recount: Recount) -> Refunded<'a> {
        Box::pin(ready(Ok(self.recount_at_once(charge, recount))))
    }

    fn blocking_recount(self: Arc<Self>, charge: Charge, recount: Recount) -> Result<bool, BackendError> {
        Ok(self.recount_at_once(&charge, recount))
    }

    fn runtimes(&self) -> Option<&Arc<Runtimes>> {
        None
    }
}
