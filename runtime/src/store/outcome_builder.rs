//! Combines the answers of all rules on one call, or those of its parts.

use crate::decision::Wait;
use crate::store::Outcome;

/// Any rule or part that makes the call wait denies it.
///
/// The wait is the longest of all rules and bans. If a rule lapses before it ends, the call is never admitted, unless a
/// wait is only an upper bound. The rule to report is the first duplicate rule that denies, or else the rule with the
/// longest wait.
#[derive(Debug)]
pub(super) struct OutcomeBuilder {
    /// The longest wait of a rule, and the place of that rule.
    longest: Wait,
    place: usize,
    duplicate: Option<usize>,
    lapse: Wait,
    ban: Wait,
    /// Whether a wait is only an upper bound.
    is_bound: bool,
}

impl OutcomeBuilder {
    #[inline]
    pub(super) fn new() -> Self {
        Self { longest: Wait::NONE, place: 0, duplicate: None, lapse: Wait::NEVER, ban: Wait::NONE, is_bound: false }
    }

    /// Adds the wait of the rule at this place. The rules may come in any order.
    #[inline]
    pub(super) fn add_wait(&mut self, place: usize, wait: Wait) {
        if wait > self.longest || wait == self.longest && place < self.place {
            self.longest = wait;
            self.place = place;
        }
    }

    /// Adds a wait that is only an upper bound.
    pub(super) fn add_bound(&mut self, place: usize, wait: Wait) {
        self.add_wait(place, wait);
        self.is_bound |= !wait.is_none();
    }

    /// Adds the wait of a duplicate rule.
    #[inline]
    pub(super) fn add_duplicate_wait(&mut self, place: usize, wait: Wait) {
        self.add_wait(place, wait);
        if !wait.is_none() {
            self.duplicate = Some(self.duplicate.map_or(place, |other| other.min(place)));
        }
    }

    /// Adds the time after which a rule would not admit the call any more.
    pub(super) fn add_lapse(&mut self, lapse: Wait) {
        self.lapse = self.lapse.min(lapse);
    }

    /// Adds how long a subject is still banned.
    pub(super) fn add_ban(&mut self, wait: Wait) {
        self.ban = self.ban.max(wait);
    }

    /// The longest wait of all rules and bans.
    #[inline]
    pub(super) fn wait(&self) -> Wait {
        self.longest.max(self.ban)
    }

    /// The place of the rule to report.
    pub(super) fn denying(&self) -> usize {
        self.duplicate.unwrap_or(self.place)
    }

    #[inline]
    pub(super) fn build(&self) -> Outcome {
        if !self.ban.is_none() {
            Outcome::Banned { retry_after: self.retry_after() }
        } else if !self.longest.is_none() {
            Outcome::denied(self.denying(), self.retry_after())
        } else {
            Outcome::Admitted
        }
    }

    #[inline]
    fn retry_after(&self) -> Wait {
        let wait = self.wait();
        // If a rule lapses first, the call is not admitted after the wait.
        if self.is_bound || wait < self.lapse { wait } else { Wait::NEVER }
    }
}
