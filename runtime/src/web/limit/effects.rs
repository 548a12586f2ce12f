//! What a limit does with a request beside deciding it.

use std::sync::Arc;

use http::{Response, StatusCode};

use crate::decision::{Permit, Rejection};
use crate::limiter::Check;
use crate::observe::log;
use crate::web::parts::Parts;

/// Makes the response to a request that is rejected.
pub(in crate::web) type Reject = dyn Fn(&Rejection, &Parts<'_>) -> Response<String> + Send + Sync;

/// Says whether a request with a response of that status does not count.
pub(in crate::web) type RefundIf = dyn Fn(StatusCode) -> bool + Send + Sync;

/// What a limit does with a request beside deciding it.
#[derive(Clone, Default)]
pub(in crate::web) struct Effects {
    /// `None` is a problem, or a status of gRPC.
    pub(in crate::web) reject: Option<Arc<Reject>>,
    pub(in crate::web) refund_if: Option<Arc<RefundIf>>,
}

/// A request as a limit sees it.
#[derive(Default)]
pub(in crate::web) struct Limited {
    /// `None` if the request is not limited.
    pub(in crate::web) check: Option<Check<'static>>,
    pub(in crate::web) effects: Effects,
}

impl Limited {
    /// Awaits the decision, if the request is limited. The permit is to be held until the response was sent.
    pub(in crate::web) async fn admit(&mut self) -> Result<Option<Permit>, Rejection> {
        match self.check.take() {
            Some(check) => check.admit().await,
            None => Ok(None),
        }
    }
}

impl Effects {
    /// Returns the limit's own response to a request that is rejected, if it has one.
    pub(in crate::web) fn rejected(&self, rejection: &Rejection, parts: &Parts<'_>) -> Option<Response<String>> {
        self.reject.as_ref().map(|reject| reject(rejection, parts))
    }

    /// Refunds a request that does not count, as its response has that status. Returns what keeps it running.
    pub(in crate::web) async fn refunded(self, permit: Option<Permit>, status: u16) -> Option<Permit> {
        let permit = permit?;
        let status = StatusCode::from_u16(status).ok();
        let is_refunded = self.refund_if.zip(status).is_some_and(|(refund_if, status)| refund_if(status));
        let policy = permit.policy().filter(|_| is_refunded).cloned();
        let Some(policy) = policy else { return Some(permit) };
        let (counted, running) = permit.split();
        if let Err(error) = counted.refund().await {
            log::not_refunded(policy.name(), &error);
        }
        Some(running)
    }
}
