//! Combines the answers of all rules on one call.

use crate::decision::Wait;
use crate::store::Outcome;

/// Combines what the rules answer; one that makes the call wait denies it.
///
/// The wait is the longest of all, that for the end of a ban included, unless a rule that would admit the call by then
/// lapses before, and no wait is a mere bound. The rule to report is the first duplicate rule that denies, or else the rule
/// with the longest wait.
#[derive(Debug)]
pub(super) struct OutcomeBuilder {
    /// The longest wait of a rule, and the place of that rule.
    longest: Wait,
    place: usize,
    duplicate: Option<usize>,
    lapse: Wait,
    ban: Wait,
    /// Whether a wait is no more than a bound.
    is_bound: bool,
}

impl OutcomeBuilder {
    #[inline]
    pub(super) fn new() -> Self {
        Self { longest: Wait::NONE, place: 0, duplicate: None, lapse: Wait::NEVER, ban: Wait::NONE, is_bound: false }
    }

    /// Adds how long the rule at that place makes the call wait, in any order of the rules.
    #[inline]
    pub(super) fn add_wait(&mut self, place: usize, wait: Wait) {
        if wait > self.longest || wait == self.longest && place < self.place {
            self.longest = wait;
            self.place = place;
        }
    }

    /// Adds the wait of a rule that is no more than a bound.
    pub(super) fn add_bound(&mut self, place: usize, wait: Wait) {
        self.add_wait(place, wait);
        self.is_bound |= !wait.is_none();
    }

    /// Adds the wait of a rule against duplicates.
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

    /// Adds the rest of a subject's ban.
    pub(super) fn add_ban(&mut self, wait: Wait) {
        self.ban = self.ban.max(wait);
    }

    /// The longest wait of all, also that for the end of a ban.
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
        // A rule that lapses before would not admit the call then.
        if self.is_bound || wait < self.lapse { wait } else { Wait::NEVER }
    }
}
