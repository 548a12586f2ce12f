//! The effects of a limit besides its decision: its own responses, and refunds.

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

/// Returns the text of a denial; `None` is the usual one.
pub(in crate::web) type DenialText = dyn Fn(&Rejection) -> Option<String> + Send + Sync;

/// The effects of a limit besides its decision.
#[derive(Clone, Default)]
pub(in crate::web) struct Effects {
    /// `None` is a problem, or a status of gRPC.
    pub(in crate::web) reject: Option<Arc<Reject>>,
    pub(in crate::web) refund_if: Option<Arc<RefundIf>>,
    pub(in crate::web) messages: Option<Arc<DenialText>>,
}

/// The checks of a request, one for each policy that decides it. It is not limited if there are none.
#[derive(Default)]
pub(in crate::web) struct Limited(pub(in crate::web) Vec<(Check<'static>, Effects)>);

/// The permits of a request that was admitted, with what to do with each.
#[derive(Default)]
pub(in crate::web) struct AdmittedRequest(Vec<(Permit, Effects)>);

impl Limited {
    /// Awaits all decisions. Returns the permits, and the rejection by the first policy that rejects the request.
    pub(in crate::web) async fn admit(self) -> (AdmittedRequest, Option<(Rejection, Effects)>) {
        let (mut admitted, mut rejected) = (AdmittedRequest::default(), None);
        for (check, effects) in self.0 {
            match check.admit().await {
                Ok(permit) => admitted.0.push((permit, effects)),
                Err(rejection) if rejected.is_none() => rejected = Some((rejection, effects)),
                Err(_) => {}
            }
        }
        (admitted, rejected)
    }
}

impl AdmittedRequest {
    /// Refunds the permits whose policies do not count a response with this status. Returns the permits that are held until
    /// the response was sent.
    pub(in crate::web) async fn refunded(self, status: u16) -> Vec<Permit> {
        let mut held = Vec::with_capacity(self.0.len());
        for (permit, effects) in self.0 {
            held.push(effects.refunded(permit, status).await);
        }
        held
    }
}

impl Effects {
    pub(in crate::web) fn rejected(&self, rejection: &Rejection, parts: &Parts<'_>) -> Option<Response<String>> {
        self.reject.as_ref().map(|reject| reject(rejection, parts))
    }

    /// Refunds a permit if a response with this status does not count. Returns the permit that keeps the call running.
    async fn refunded(self, permit: Permit, status: u16) -> Permit {
        let status = StatusCode::from_u16(status).ok();
        let is_refunded = self.refund_if.zip(status).is_some_and(|(refund_if, status)| refund_if(status));
        let policy = permit.policy().filter(|_| is_refunded).cloned();
        let Some(policy) = policy else { return permit };
        let (counted, running) = permit.split();
        if let Err(error) = counted.refund().await {
            log::not_refunded(policy.name(), &error);
        }
        running
    }
}
