//! The concurrent calls of a subject.

use std::collections::BTreeMap;

use crate::algorithm::Quota;
use crate::call::LeaseName;
use crate::decision::Wait;

/// The most leases that are looked through for a wait.
const MOST_PASSED: usize = 128;

/// The concurrent calls of a subject, each with the time at which it was admitted, ordered by
/// name: the oldest first.
///
/// They end only with their calls or with the process. Reports show them as if renewed after half of their length, as in
/// Redis.
#[derive(Debug, Default)]
pub(super) struct Leases(BTreeMap<LeaseName, u64>);

impl Leases {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, name: LeaseName, now_us: u64) {
        self.0.insert(name, now_us);
    }

    /// Returns whether the lease was there.
    pub(super) fn give_back(&mut self, name: LeaseName) -> bool {
        self.0.remove(&name).is_some()
    }

    /// How long one more call has to wait at most, until enough leases have ended.
    pub(super) fn wait(&self, limit: u64, lease_us: u64, now_us: u64) -> Wait {
        if limit == 0 {
            return Wait::NEVER;
        }
        let Some(beyond) = (self.0.len() as u64).checked_sub(limit) else { return Wait::NONE };
        // The oldest end first. If the limit was lowered, more leases may have to end than are passed over.
        let last = self.0.values().nth(usize::try_from(beyond).map_or(MOST_PASSED, |beyond| beyond.min(MOST_PASSED)));
        last.map_or(Wait::NEVER, |&taken_us| Wait::us(left_us(taken_us, lease_us, now_us)))
    }

    pub(super) fn quota(&self, limit: u64, lease_us: u64, now_us: u64) -> Quota {
        let remaining = limit.saturating_sub(self.0.len() as u64);
        let reset_us = self.0.last_key_value().map_or(0, |(_, &taken_us)| left_us(taken_us, lease_us, now_us));
        Quota::new(remaining, reset_us).with_wait(self.wait(limit, lease_us, now_us))
    }
}

/// How long a lease still lasts that is renewed after half of its length.
fn left_us(taken_us: u64, lease_us: u64, now_us: u64) -> u64 {
    let half_us = (lease_us / 2).max(1);
    lease_us - now_us.saturating_sub(taken_us) % half_us
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_US: u64 = 1_000_000;

    #[test]
    fn the_wait_ends_with_the_oldest_lease_which_is_renewed_after_half_of_its_length() {
        let mut leases = Leases::default();
        let (first, second) = (LeaseName::next(), LeaseName::next());
        leases.take(first, 0);
        leases.take(second, 3 * SECOND_US);
        let wait = |leases: &Leases, at| leases.wait(2, 10 * SECOND_US, at * SECOND_US);
        assert_eq!(wait(&leases, 4), Wait::us(6 * SECOND_US));
        assert_eq!(wait(&leases, 5), Wait::us(10 * SECOND_US));
        assert_eq!(leases.wait(1, 10 * SECOND_US, 4 * SECOND_US), Wait::us(9 * SECOND_US));
        assert_eq!(leases.quota(5, 10 * SECOND_US, 4 * SECOND_US), Quota::new(3, 9 * SECOND_US));
        assert!(leases.give_back(first) && !leases.give_back(first));
        assert_eq!(wait(&leases, 5), Wait::NONE);
        assert_eq!(leases.wait(0, SECOND_US, 0), Wait::NEVER);
    }
}
