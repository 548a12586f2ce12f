//! What a policy has decided on a trace.

use std::fmt;
use std::time::Duration;

use super::denials::Denials;
use crate::decision::{Decision, RoundedUp};
use crate::policy::Policy;

/// What a policy has decided on a trace so far.
///
/// Its text is a line with the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    admitted: u64,
    denials: Denials,
    never: u64,
    longest_wait: Option<Duration>,
}

impl Summary {
    pub(super) fn new(policy: &Policy) -> Self {
        Self { admitted: 0, denials: Denials::new(policy), never: 0, longest_wait: None }
    }

    pub(super) fn add(&mut self, decision: &Decision) {
        let Decision::Denied(denial) = decision else {
            self.admitted += 1;
            return;
        };
        self.denials.add(denial);
        match denial.retry_after() {
            Some(wait) => self.longest_wait = self.longest_wait.max(Some(wait)),
            None => self.never += 1,
        }
    }

    /// Returns how many calls were decided.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.admitted + self.denied()
    }

    /// Returns how many calls were admitted.
    #[must_use]
    pub fn admitted(&self) -> u64 {
        self.admitted
    }

    /// Returns how many calls were denied.
    #[must_use]
    pub fn denied(&self) -> u64 {
        self.denials.total()
    }

    /// Returns the denials by what denied.
    #[must_use]
    pub fn denials(&self) -> &Denials {
        &self.denials
    }

    /// Returns the longest wait of a denied call: how long until it would have been admitted, without the calls in
    /// between. `None` if no denied call would ever have been, or none was denied.
    #[must_use]
    pub fn longest_wait(&self) -> Option<Duration> {
        self.longest_wait
    }

    /// Returns how many of the denied calls would never have been admitted, as each costs more than a rule admits at once.
    #[must_use]
    pub fn never(&self) -> u64 {
        self.never
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} calls: {} admitted, {} denied", self.calls(), self.admitted, self.denied())?;
        self.denials.write_reasons(f, "by")?;
        if let Some(wait) = self.longest_wait {
            write!(f, "; longest wait {}", RoundedUp(wait))?;
        }
        if self.never > 0 { write!(f, "; {} never admitted", self.never) } else { Ok(()) }
    }
}
