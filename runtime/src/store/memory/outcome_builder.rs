//! Combines the answers of all rules on one call.

use std::cmp::Reverse;
use std::time::Duration;

use super::wait::Wait;
use crate::store::Outcome;

/// Combines what the rules answer; one that makes the call wait denies it.
///
/// The wait is the longest of all, that for the end of a ban included, unless a rule that would admit the call by then
/// lapses before. The rule to report is the first duplicate rule that denies, or else the rule with the longest wait.
#[derive(Debug, Default)]
pub(super) struct OutcomeBuilder {
    longest: Option<(usize, Wait)>,
    duplicate: Option<usize>,
    lapse: Option<Wait>,
    ban: Option<Wait>,
}

impl OutcomeBuilder {
    /// Adds how long the rule at that place makes the call wait, in any order of the rules.
    #[inline]
    pub(super) fn add_wait(&mut self, place: usize, wait: Wait) {
        let is_longer = |(other, longest)| (wait, Reverse(place)) > (longest, Reverse(other));
        if !wait.is_none() && self.longest.is_none_or(is_longer) {
            self.longest = Some((place, wait));
        }
    }

    /// The same for a duplicate rule.
    pub(super) fn add_duplicate_wait(&mut self, place: usize, wait: Wait) {
        self.add_wait(place, wait);
        if !wait.is_none() {
            self.duplicate = Some(self.duplicate.map_or(place, |other| other.min(place)));
        }
    }

    /// Adds the time after which a rule would not admit the call any more.
    pub(super) fn add_lapse(&mut self, lapse: Wait) {
        self.lapse = Some(self.lapse.map_or(lapse, |earlier| earlier.min(lapse)));
    }

    /// Adds the rest of a subject's ban.
    pub(super) fn add_ban(&mut self, wait: Wait) {
        self.ban = self.ban.max(Some(wait));
    }

    #[inline]
    pub(super) fn build(self) -> Outcome {
        if let Some(rest) = self.ban {
            let wait = self.longest.map_or(rest, |(_, wait)| wait.max(rest));
            return Outcome::Banned { retry_after: self.retry_after(wait) };
        }
        self.longest.map_or(Outcome::Admitted, |(longest, wait)| Outcome::Denied {
            rule: self.duplicate.unwrap_or(longest),
            retry_after: self.retry_after(wait),
        })
    }

    fn retry_after(&self, wait: Wait) -> Option<Duration> {
        wait.retry_after().filter(|_| self.lapse.is_none_or(|lapse| wait < lapse))
    }
}
