//! The span of a decision. No subscriber is called for it within an event or another span, because the subscriber may
//! have caused the decision itself.

use tracing::field::{Empty, display};
use tracing::{Span, debug_span};

use super::terms::ObservedRule;
use super::terms::TARGET;
use super::voice::speak;

pub(super) const IS_ON: bool = true;

pub(super) struct DecisionSpan(Span);

impl DecisionSpan {
    pub(super) fn begin(policy: &str) -> Self {
        let span = || debug_span!(target: TARGET, "decide", policy, outcome = Empty, rule = Empty, unit = Empty, decided_by = Empty);
        Self(speak(span).unwrap_or_else(Span::none))
    }

    pub(super) fn none() -> Self {
        Self(Span::none())
    }

    pub(super) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let entered = speak(|| self.0.enter());
        let output = work();
        speak(|| drop(entered));
        output
    }

    pub(super) fn record(&self, outcome: &str, rule: Option<ObservedRule<'_>>, decided_by: &str) {
        speak(|| {
            self.0.record("outcome", display(outcome));
            if let Some(rule) = rule {
                self.0.record("rule", rule.position);
                rule.unit.inspect(|unit| _ = self.0.record("unit", unit));
            }
            self.0.record("decided_by", display(decided_by));
        });
    }
}

impl Drop for DecisionSpan {
    fn drop(&mut self) {
        let span = std::mem::replace(&mut self.0, Span::none());
        speak(|| drop(span));
    }
}
