//! Rules in shadow: each of them decides an admitted call once more, and its answer changes nothing. A peek with a
//! report shows where they stand.

use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::Poll;

use super::Check;
use super::attempt::Attempt;
use super::inputs::Inputs;
use crate::call::CallOptions;
use crate::decision::Decision;
use crate::error::BackendError;
use crate::system::under_way::TaskKind;

type Decided = Result<Decision, BackendError>;

impl Check<'_> {
    /// Whether the call may have rules in shadow.
    #[inline]
    pub(super) fn may_have_trials(&self) -> bool {
        let is_overridden = || self.limiter().core.overrides.are_active() && !self.policy().is_trial();
        self.shows_trials() && (!self.policy().trials().is_empty() || is_overridden())
    }

    /// Whether anybody sees the answers of rules in shadow: of a peek, only its report shows them.
    #[inline]
    fn shows_trials(&self) -> bool {
        let CallOptions { peek, report, report_is_optional, .. } = self.options;
        !peek || report && !report_is_optional
    }

    /// Decides the rules in shadow in this process.
    pub(super) fn decide_trials_at_once(&self, decided: Decided) -> Decided {
        let answers = self.trials(&decided).into_iter().filter_map(|mut trial| match trial.decide_at_once() {
            ControlFlow::Break(decided) => decided.ok(),
            ControlFlow::Continue(_) => None,
        });
        self.with_trials(decided, answers.collect())
    }

    /// Decides the rules in shadow in any store.
    pub(super) async fn decide_trials(&self, decided: Decided) -> Decided {
        let answers = answers_of(self.trials(&decided)).await;
        self.with_trials(decided, answers)
    }

    /// Decides the rules in shadow for a caller that cannot await. If the thread of the limiter is kept from its work, they are
    /// left out.
    pub(super) fn decide_trials_on_thread(&self, decided: Decided) -> Decided {
        let trials = self.trials(&decided);
        if trials.is_empty() {
            return decided;
        }
        let core = &self.limiter().core;
        let answers = core.run_on_thread(TaskKind::Other, answers_of(trials), core.patience(self.policy()));
        self.with_trials(decided, answers.unwrap_or_default())
    }

    /// Returns a check by each rule in shadow, if the call was admitted or is a peek.
    fn trials(&self, decided: &Decided) -> Vec<Check<'static>> {
        let CallOptions { cost, refundable, peek, .. } = self.options;
        let is_answered = decided.as_ref().is_ok_and(|decision| peek || decision.is_allowed());
        if !self.may_have_trials() || !is_answered {
            return Vec::new();
        }
        let Ok(attempt) = Attempt::new(self) else { return Vec::new() };
        let options = CallOptions { cost, refundable, peek, report: peek, shadow: true, ..CallOptions::PLAIN };
        let limiter = self.limiter();
        let trials = attempt.trials().map(|(trial, subject)| Check {
            inputs: Inputs::of_trial(limiter.clone(), trial.policy.clone(), *subject, self.inputs.costs().into_owned()),
            options,
        });
        trials.collect()
    }

    /// Adds the decided answers of rules in shadow. Their denials were already reported, and change nothing.
    fn with_trials(&self, decided: Decided, answers: Vec<Decision>) -> Decided {
        if answers.is_empty() {
            return decided;
        }
        if self.options.peek {
            let statuses = answers.iter().flat_map(Decision::report).cloned().collect();
            return decided.map(|decision| decision.with_trials(statuses));
        }
        match decided? {
            Decision::Allowed(permit) => {
                let permits = answers.into_iter().filter_map(|decision| decision.into_result().ok());
                Ok(Decision::Allowed(permit.with_trial_permits(permits.collect())))
            }
            denied @ Decision::Denied(_) => Ok(denied),
        }
    }
}

impl Check<'static> {
    // Boxed, because the decision of a call contains it.
    fn decide_boxed(mut self) -> Pin<Box<dyn Future<Output = Decided> + Send>> {
        Box::pin(async move { self.decide().await })
    }
}

/// Decides all at the same time, so that they take at most one more deadline. Returns the answers in the order of the rules.
async fn answers_of(trials: Vec<Check<'static>>) -> Vec<Decision> {
    let mut trials: Vec<_> = trials.into_iter().map(Check::decide_boxed).enumerate().collect();
    let mut answers = Vec::with_capacity(trials.len());
    poll_fn(|context| {
        trials.retain_mut(|(place, trial)| match trial.as_mut().poll(context) {
            Poll::Ready(decided) => {
                answers.extend(decided.ok().map(|decision| (*place, decision)));
                false
            }
            Poll::Pending => true,
        });
        if trials.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    answers.sort_by_key(|(place, _)| *place);
    answers.into_iter().map(|(_, decision)| decision).collect()
}
