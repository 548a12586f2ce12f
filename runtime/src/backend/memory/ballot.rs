//! The rules' voices on one call.

use std::cmp::Reverse;

use super::wait::Wait;
use crate::backend::Verdict;

/// Gathers what the rules say; one that objects denies the call.
///
/// The longest wait is told, unless a rule that would admit the call by then lapses before. Of the rules, a duplicate's is
/// named first and then the one that denies longest.
#[derive(Debug, Default)]
pub(super) struct Ballot {
    longest: Option<(usize, Wait)>,
    duplicate: Option<usize>,
    lapse: Option<Wait>,
    ban: Option<Wait>,
}

impl Ballot {
    /// Hears how long a rule makes the call wait, in any order of the rules.
    #[inline]
    pub(super) fn hear(&mut self, index: usize, wait: Wait) {
        let sooner = |(other, longest)| (wait, Reverse(index)) > (longest, Reverse(other));
        if !wait.is_none() && self.longest.is_none_or(sooner) {
            self.longest = Some((index, wait));
        }
    }

    /// The same of a rule whose denials name the call a duplicate.
    pub(super) fn hear_duplicate(&mut self, index: usize, wait: Wait) {
        self.hear(index, wait);
        if !wait.is_none() {
            self.duplicate = Some(self.duplicate.map_or(index, |other| other.min(index)));
        }
    }

    /// Hears that a rule would not admit the call any more after that time.
    pub(super) fn hear_lapse(&mut self, lapse: Wait) {
        self.lapse = Some(self.lapse.map_or(lapse, |earlier| earlier.min(lapse)));
    }

    /// Hears that a subject is banned.
    pub(super) fn hear_ban(&mut self, wait: Wait) {
        self.ban = Some(wait);
    }

    pub(super) fn is_banned(&self) -> bool {
        self.ban.is_some()
    }

    #[inline]
    pub(super) fn verdict(self) -> Verdict {
        if let Some(wait) = self.ban {
            return Verdict::Banned { retry_after: wait.retry_after().unwrap_or_default() };
        }
        self.longest.map_or(Verdict::Admitted, |(longest, wait)| Verdict::Denied {
            rule: self.duplicate.unwrap_or(longest),
            retry_after: wait.retry_after().filter(|_| self.lapse.is_none_or(|lapse| wait < lapse)),
        })
    }
}
