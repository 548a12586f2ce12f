//! Rules in shadow: a call that the enforced rules admit is decided by each of them, too, and goes on whatever that is.

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;

use super::Check;
use super::attempt::Attempt;
use super::inputs::Inputs;
use crate::call::CallOptions;
use crate::decision::{Decision, Permit};
use crate::error::BackendError;

type Decided = Result<Decision, BackendError>;

impl Check<'_> {
    /// Whether rules may be tried out beside this call.
    #[inline]
    pub(super) fn may_try_rules(&self) -> bool {
        let is_overridden = || self.limiter().core.overrides.are_active() && !self.policy().is_trial();
        !self.options.peek && (!self.policy().trials().is_empty() || is_overridden())
    }

    /// Tries rules out in this process.
    pub(super) fn try_rules_at_once(&self, decided: Decided) -> Decided {
        let tried = self.trials(&decided).into_iter().filter_map(|trial| match trial.decide_at_once() {
            ControlFlow::Break(tried) => permit_of(tried),
            ControlFlow::Continue(_) => None,
        });
        with_trials(decided, tried.collect())
    }

    /// Tries rules out wherever they are decided.
    pub(super) async fn try_rules(&self, decided: Decided) -> Decided {
        let mut tried = Vec::new();
        for trial in self.trials(&decided) {
            tried.extend(permit_of(trial.decide_boxed().await));
        }
        with_trials(decided, tried)
    }

    /// The checks by each rule that is tried out, if the call was admitted.
    fn trials(&self, decided: &Decided) -> Vec<Check<'static>> {
        if !self.may_try_rules() || !matches!(decided, Ok(Decision::Allowed(_))) {
            return Vec::new();
        }
        let Ok(attempt) = Attempt::new(self) else { return Vec::new() };
        let CallOptions { cost, refundable, .. } = self.options;
        let options = CallOptions { cost, refundable, shadow: true, ..CallOptions::PLAIN };
        let limiter = self.limiter();
        let trials = attempt.trials().map(|(trial, subject)| Check {
            inputs: Inputs::of_trial(limiter.clone(), trial.policy.clone(), *subject),
            options,
        });
        trials.collect()
    }
}

impl Check<'static> {
    // Boxed, as it is decided within the decision of a call.
    fn decide_boxed(self) -> Pin<Box<dyn Future<Output = Decided> + Send>> {
        Box::pin(async move { self.decide().await })
    }
}

fn permit_of(tried: Decided) -> Option<Permit> {
    match tried {
        Ok(Decision::Allowed(permit)) => Some(permit),
        // The denial was reported, and changes nothing.
        Ok(Decision::Denied(_)) | Err(_) => None,
    }
}

fn with_trials(decided: Decided, tried: Vec<Permit>) -> Decided {
    match decided {
        Ok(Decision::Allowed(permit)) if !tried.is_empty() => Ok(Decision::Allowed(permit.with_trials(tried))),
        decided => decided,
    }
}
