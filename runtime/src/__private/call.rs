//! What an annotated function asks beside its policy and its subject.

use std::time::Duration;

use crate::{Check, Limiter, Permit, Policy, Subject, observe};

/// How one call is decided, where the attribute says more than rules.
#[derive(Debug)]
pub struct Call {
    others: Vec<(&'static str, Subject)>,
    cost: u64,
    patience: Option<Duration>,
    refundable: bool,
    shadow: bool,
}

impl Call {
    /// Returns a call like any other.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "expansions say what they make")]
    #[inline]
    pub const fn new() -> Self {
        Self { others: Vec::new(), cost: 1, patience: None, refundable: false, shadow: false }
    }

    /// Names another subject.
    #[must_use]
    pub fn subject(mut self, label: &'static str, subject: Subject) -> Self {
        self.others.push((label, subject));
        self
    }

    /// Sets the weight.
    #[must_use]
    pub fn cost(self, cost: u64) -> Self {
        Self { cost, ..self }
    }

    /// Waits up to that long.
    #[must_use]
    pub fn wait(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// Asks for a permit that can be given back.
    #[must_use]
    pub fn refundable(self) -> Self {
        Self { refundable: true, ..self }
    }

    /// Lets it run whatever is decided.
    #[must_use]
    pub fn shadow(self) -> Self {
        Self { shadow: true, ..self }
    }

    #[inline]
    pub(super) fn is_shadow(&self) -> bool {
        self.shadow
    }

    /// Asks all of it.
    #[inline]
    pub(super) fn check<'a>(&'a self, limiter: &'a Limiter, policy: &'a Policy, subject: &'a Subject) -> Check<'a> {
        let mut check = limiter.check(policy, subject).cost(self.cost);
        for (label, subject) in &self.others {
            check = check.subject(label, subject);
        }
        if let Some(patience) = self.patience {
            check = check.wait(patience);
        }
        if self.refundable {
            check = check.refundable();
        }
        if self.shadow {
            check = check.shadow();
        }
        check
    }
}

/// Says whether the result of a body is one for which the user wants the permit given back.
pub fn is_refunded<T>(result: &T, refund_if: impl FnOnce(&T) -> bool) -> bool {
    refund_if(result)
}

/// Gives a permit back, if there is one. The body is done: that it could not be given back is for the operator to know.
pub async fn refund(permit: Option<Permit>) {
    let Some(permit) = permit else { return };
    let policy = permit.policy().cloned();
    if let (Err(outage), Some(policy)) = (permit.refund().await, policy) {
        observe::unrefunded(policy.name(), &outage);
    }
}
