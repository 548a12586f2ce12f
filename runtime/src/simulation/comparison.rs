//! Two policies on one trace.

use std::fmt;

use super::Simulation;
use super::summary::{Denials, Summary};
use super::trace::{TraceCall, TraceError, decide_all};
use crate::decision::Decision;
use crate::policy::Policy;

/// Two policies on one trace: which calls they decide differently, and which way.
///
/// Each policy decides every call by what it admitted itself, and by its costs in the units that it counts. Their names
/// do not matter: neither counts for the other.
#[derive(Debug)]
pub struct Comparison {
    before: Simulation,
    after: Simulation,
    newly_denied: Denials,
    newly_admitted: Denials,
}

impl Comparison {
    /// Starts both policies without tallies: for example the one in force, and the one that is to replace it.
    #[must_use]
    pub fn new(before: &Policy, after: &Policy) -> Self {
        Self {
            before: Simulation::beside(before, after),
            after: Simulation::beside(after, before),
            newly_denied: Denials::new(after),
            newly_admitted: Denials::new(before),
        }
    }

    /// Decides the next call of a trace by both policies, at its time, and returns the decisions in their order.
    ///
    /// # Errors
    ///
    /// One of them cannot decide the call: see [`Simulation::call`]. Then neither changes.
    pub fn call(&mut self, call: &TraceCall) -> Result<(Decision, Decision), TraceError> {
        let (before, after) = (self.before.engine.prepare(call), self.after.engine.prepare(call));
        // No policy decides before it is known that both can.
        let (before, after) = (before?, after?);
        let (before, after) = (self.before.decide(&before)?, self.after.decide(&after)?);
        match (&before, &after) {
            (Decision::Allowed(_), Decision::Denied(denial)) => self.newly_denied.add(denial),
            (Decision::Denied(denial), Decision::Allowed(_)) => self.newly_admitted.add(denial),
            _ => {}
        }
        Ok((before, after))
    }

    /// Decides all calls of a trace; `on_mistake` chooses whether to stop at a mistake, as in [`Simulation::run`].
    ///
    /// # Errors
    ///
    /// The mistake at which it stopped. Decisions before it stay.
    pub fn run(
        &mut self,
        trace: impl IntoIterator<Item = Result<TraceCall, TraceError>>,
        on_mistake: impl FnMut(TraceError) -> Result<(), TraceError>,
    ) -> Result<(), TraceError> {
        decide_all(trace, on_mistake, |call| self.call(call).map(drop))
    }

    /// Returns the summary of the first policy.
    #[must_use]
    pub fn before(&self) -> &Summary {
        self.before.summary()
    }

    /// Returns the summary of the second policy.
    #[must_use]
    pub fn after(&self) -> &Summary {
        self.after.summary()
    }

    /// Returns how many calls were decided differently.
    #[must_use]
    pub fn differences(&self) -> u64 {
        self.newly_denied.total() + self.newly_admitted.total()
    }

    /// Returns the calls that only the first policy admitted, by the rules of the second that denied them.
    #[must_use]
    pub fn newly_denied(&self) -> &Denials {
        &self.newly_denied
    }

    /// Returns the calls that only the second policy admitted, by the rules of the first that denied them.
    #[must_use]
    pub fn newly_admitted(&self) -> &Denials {
        &self.newly_admitted
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = self.before().calls();
        write!(f, "{calls} calls: {} decided alike, ", calls - self.differences())?;
        write!(f, "{} newly denied", self.newly_denied.total())?;
        self.newly_denied.write_reasons(f, "by")?;
        write!(f, ", {} newly admitted", self.newly_admitted.total())?;
        self.newly_admitted.write_reasons(f, "denied before by")
    }
}
