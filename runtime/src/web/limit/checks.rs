//! The checks that limit a request, each with the effects of its limit besides the decision: its own responses, and refunds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{Response, StatusCode};

use crate::decision::{Permit, Rejection};
use crate::limiter::Check;
use crate::observe::{ReportedOnce, log};
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

/// The checks of the limits around a request. They go along with the request.
#[derive(Clone, Default)]
pub(in crate::web) struct CountedChecks(Arc<Vec<CountedCheck>>);

#[derive(Clone)]
struct CountedCheck {
    path: String,
    check: Check<'static>,
    /// Whether a check further in was left out because of it. It stands for one: a handler may send several requests on with
    /// what came with its own.
    is_used: Arc<AtomicBool>,
}

impl CountedChecks {
    /// Leaves out checks that the same limit has made of this request. Returns the rest, and what to store in it.
    pub(in crate::web) fn count(limited: Limited, parts: &Parts<'_>) -> (Limited, Self) {
        let Self(before) = parts.extension(Self::clone).unwrap_or_default();
        let path = parts.path();
        let mut all = before.to_vec();
        let mut left = Vec::with_capacity(limited.0.len());
        for (check, effects) in limited.0 {
            if let Some(standing) = before.iter().find(|before| before.stands_for(path, &check)) {
                report_twice(&check);
                // It stands for the next one further in, too.
                all.push(CountedCheck::new(path, standing.check.clone()));
            } else {
                all.push(CountedCheck::new(path, check.clone()));
                left.push((check, effects));
            }
        }
        (Limited(left), Self(Arc::new(all)))
    }
}

impl CountedCheck {
    fn new(path: &str, check: Check<'static>) -> Self {
        Self { path: path.to_owned(), check, is_used: Arc::default() }
    }

    /// Whether it has decided what this check would decide, once. In shadow it has denied nothing.
    fn stands_for(&self, path: &str, check: &Check<'static>) -> bool {
        self.is_about(path)
            && self.check.is_alike(check)
            && (!self.check.is_shadow() || check.is_shadow())
            && !self.is_used.swap(true, Ordering::Relaxed)
    }

    /// Whether a request with this path is the one that was counted: a nested router sees the end of its path. Other
    /// requests may have come with it, as the parts of a batch.
    fn is_about(&self, path: &str) -> bool {
        path == "/" || self.path.ends_with(path)
    }
}

fn report_twice(check: &Check<'_>) {
    static REPORTED: ReportedOnce = ReportedOnce::new();
    if REPORTED.is_first() {
        log::limited_twice(check.policy_name());
    }
}
