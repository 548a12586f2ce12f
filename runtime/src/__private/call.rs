//! What an annotated function asks beside its policy and its subject.

use std::borrow::Cow;
use std::time::Duration;

use crate::decision::Permit;
use crate::limiter::{Check, Limiter};
use crate::observe::log;
use crate::policy::Policy;
use crate::store::{CallOptions, WaitLimit};
use crate::subject::Subject;

/// How one call is decided, where the attribute has more than rules.
#[derive(Debug)]
pub struct Call {
    others: Vec<(&'static str, Subject)>,
    options: CallOptions,
}

impl Call {
    /// Returns a plain call.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "expansions say what they make")]
    #[inline]
    pub const fn new() -> Self {
        Self { others: Vec::new(), options: CallOptions::PLAIN }
    }

    /// Adds another subject.
    #[must_use]
    pub fn subject(mut self, label: &'static str, subject: Subject) -> Self {
        self.others.push((label, subject));
        self
    }

    /// Sets the weight.
    #[must_use]
    pub fn cost(mut self, cost: u64) -> Self {
        self.options.cost = cost;
        self
    }

    /// Waits up to that long.
    #[must_use]
    pub fn wait(mut self, limit: Duration) -> Self {
        self.options.wait = Some(WaitLimit::Within(limit));
        self
    }

    /// Asks for a permit that can be refunded.
    #[must_use]
    pub fn refundable(mut self) -> Self {
        self.options.refundable = true;
        self
    }

    /// Runs the call whatever is decided.
    #[must_use]
    pub fn shadow(mut self) -> Self {
        self.options.shadow = true;
        self
    }

    #[inline]
    pub(super) fn is_shadow(&self) -> bool {
        self.options.shadow
    }

    #[inline]
    pub(super) fn check<'a>(
        &self,
        limiter: Cow<'a, Limiter>,
        policy: Cow<'a, Policy>,
        subject: Cow<'a, Subject>,
    ) -> Check<'a> {
        let mut check = Check::new(limiter, policy, subject, self.options);
        for (label, subject) in &self.others {
            check = check.subject(label, subject);
        }
        check
    }
}

/// Returns whether the permit of a body with that result is to be refunded.
pub fn is_refunded<T>(result: &T, refund_if: impl FnOnce(&T) -> bool) -> bool {
    refund_if(result)
}

/// Refunds a permit, if there is one. The body has run: a failed refund is only reported to the log.
pub async fn refund(permit: Option<Permit>) {
    let Some(permit) = permit else { return };
    let policy = permit.policy().cloned();
    if let (Err(error), Some(policy)) = (permit.refund().await, policy) {
        log::not_refunded(policy.name(), &error);
    }
}
