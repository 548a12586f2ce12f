//! The rules' voices on one call.

use tallygate_rules::{Role, Rule};

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
    #[inline]
    pub(super) fn hear(&mut self, rule: &Rule, index: usize, wait: Wait) {
        if wait.is_none() {
            return;
        }
        if self.longest.is_none_or(|(_, longest)| wait > longest) {
            self.longest = Some((index, wait));
        }
        if rule.role() == Role::Duplicate {
            self.duplicate = self.duplicate.or(Some(index));
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
