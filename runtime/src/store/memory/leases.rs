//! The concurrent calls of a subject.

use std::collections::BTreeMap;

use crate::algorithm::Quota;
use crate::call::LeaseName;
use crate::decision::Wait;

/// The most leases that are looked through for a wait.
const MOST_PASSED: usize = 128;

/// The most leases that are kept in a list.
const FEW: usize = 16;

/// The concurrent calls of a subject, each with the time at which it was admitted, ordered by
/// name: the oldest first.
///
/// They end only with their calls or with the process. Reports show them as if renewed after half of their length, as in
/// Redis.
#[derive(Debug)]
pub(super) enum Leases {
    /// It keeps its room while it is empty, so that the next call allocates nothing.
    Few(Vec<(LeaseName, u64)>),
    /// Calls end in any order, and removing them from a long list would take long.
    #[allow(clippy::box_collection, reason = "few subjects have many leases, and all have the room for this")]
    Many(Box<BTreeMap<LeaseName, u64>>),
}

impl Default for Leases {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Leases {
    #[inline]
    fn len(&self) -> usize {
        match self {
            Self::Few(leases) => leases.len(),
            Self::Many(leases) => leases.len(),
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(super) fn contains(&self, name: LeaseName) -> bool {
        match self {
            Self::Few(leases) => leases.iter().any(|(other, _)| *other == name),
            Self::Many(leases) => leases.contains_key(&name),
        }
    }

    #[inline]
    pub(super) fn take(&mut self, name: LeaseName, now_us: u64) {
        match self {
            Self::Few(leases) if leases.len() < FEW => {
                // Names are drawn in the order of calls, so the new one is nearly always the last.
                if leases.last().is_none_or(|(other, _)| *other < name) {
                    leases.push((name, now_us));
                } else {
                    leases.insert(leases.partition_point(|(other, _)| *other < name), (name, now_us));
                }
            }
            Self::Few(leases) => {
                let leases = leases.drain(..).chain([(name, now_us)]).collect();
                *self = Self::Many(Box::new(leases));
            }
            Self::Many(leases) => _ = leases.insert(name, now_us),
        }
    }

    /// Returns when the lease was taken, if it was there.
    #[inline]
    pub(super) fn give_back(&mut self, name: LeaseName) -> Option<u64> {
        match self {
            Self::Few(leases) => {
                let place = leases.iter().position(|(other, _)| *other == name)?;
                let is_last = place + 1 == leases.len();
                let ended = if is_last { leases.pop() } else { Some(leases.remove(place)) };
                ended.map(|(_, taken_us)| taken_us)
            }
            Self::Many(leases) => leases.remove(&name),
        }
    }

    /// Whether there were some, and all have ended.
    pub(super) fn are_over(&self) -> bool {
        match self {
            Self::Few(leases) => leases.is_empty() && leases.capacity() > 0,
            Self::Many(leases) => leases.is_empty(),
        }
    }

    /// When the lease at this place was taken, from the oldest on.
    fn taken_us(&self, place: usize) -> Option<u64> {
        match self {
            Self::Few(leases) => leases.get(place).map(|(_, taken_us)| *taken_us),
            Self::Many(leases) => leases.values().nth(place).copied(),
        }
    }

    /// When the newest lease was taken.
    fn latest_us(&self) -> Option<u64> {
        match self {
            Self::Few(leases) => leases.last().map(|(_, taken_us)| *taken_us),
            Self::Many(leases) => leases.last_key_value().map(|(_, taken_us)| *taken_us),
        }
    }

    /// How long one more call has to wait at most, until enough leases have ended.
    #[inline]
    pub(super) fn wait(&self, limit: u64, lease_us: u64, now_us: u64) -> Wait {
        match (self.len() as u64).checked_sub(limit) {
            None => Wait::NONE,
            Some(beyond) => self.wait_beyond(limit, beyond, lease_us, now_us),
        }
    }

    #[cold]
    fn wait_beyond(&self, limit: u64, beyond: u64, lease_us: u64, now_us: u64) -> Wait {
        if limit == 0 {
            return Wait::NEVER;
        }
        // The oldest end first. If the limit was lowered, more leases may have to end than are passed over.
        let last = usize::try_from(beyond).map_or(MOST_PASSED, |beyond| beyond.min(MOST_PASSED));
        self.taken_us(last).map_or(Wait::NEVER, |taken_us| Wait::us(left_us(taken_us, lease_us, now_us)))
    }

    pub(super) fn quota(&self, limit: u64, lease_us: u64, now_us: u64) -> Quota {
        let remaining = limit.saturating_sub(self.len() as u64);
        let reset_us = self.latest_us().map_or(0, |taken_us| left_us(taken_us, lease_us, now_us));
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
    use std::time::Duration;

    use tallygate_rules::Rule;

    use super::*;
    use crate::call::{StoredLease, TallyId};
    use crate::clock::Clock;
    use crate::policy::Policy;
    use crate::store::memory::Memory;
    use crate::subject::Subject;

    const SECOND_US: u64 = 1_000_000;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn policy(limit: u64) -> Policy {
        Policy::builder("p").rule(Rule::concurrency(limit, HOUR)).build().unwrap()
    }

    /// Begins a call of this subject.
    fn lease(memory: &Memory, policy: &Policy, subject: u32) -> Result<StoredLease, Wait> {
        memory.lease(TallyId { group: &policy.groups()[0], subject: &Subject::of(subject).key() }).unwrap()
    }

    fn tallies(memory: &Memory) -> usize {
        let shown = format!("{memory:?}");
        shown.split(&[' ', ','][..]).find_map(|word| word.parse().ok()).unwrap()
    }

    #[test]
    fn calls_that_end_in_any_order_leave_room_for_as_many() {
        let (memory, policy, mut random) = (Memory::new(Clock::tokio(), 9), policy(100), fastrand::Rng::with_seed(7));
        let mut running = Vec::new();
        for _ in 0..10_000 {
            if random.bool() {
                match lease(&memory, &policy, 1) {
                    Ok(lease) => running.push(lease),
                    Err(_) => assert_eq!(running.len(), 100),
                }
            } else if !running.is_empty() {
                let ended = running.swap_remove(random.usize(0..running.len()));
                assert!(memory.give_back(ended, || true).is_some() && memory.give_back(ended, || true).is_none());
            }
            assert!(running.len() <= 100);
        }
        running.drain(..).for_each(|ended| drop(memory.give_back(ended, || false)));
        assert_eq!((0..101).filter(|_| lease(&memory, &policy, 1).is_ok()).count(), 100);
    }

    #[test]
    fn what_is_given_back_says_whose_room_it_is_if_anybody_waits() {
        let (memory, policy) = (Memory::new(Clock::tokio(), 9), policy(1));
        let freed = |is_awaited| memory.give_back(lease(&memory, &policy, 7).unwrap(), || is_awaited);
        assert!(freed(false).is_none());
        let freed = freed(true).unwrap();
        assert_eq!((&*freed.segment, &*freed.subject), ("p/leases", "7"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_subject_without_running_calls_keeps_its_tally_for_a_moment_and_is_swept_later() {
        let (memory, policy) = (Memory::new(Clock::tokio(), 1_000), policy(1));
        let call = |subject| memory.give_back(lease(&memory, &policy, subject).unwrap(), || false);
        (0..100).for_each(|subject| _ = call(subject));
        assert_eq!(tallies(&memory), 100);
        tokio::time::advance(Duration::from_secs(2)).await;
        (100..200).for_each(|subject| _ = call(subject));
        assert!(tallies(&memory) < 150, "{}", tallies(&memory));
    }

    #[test]
    fn a_subject_without_running_calls_makes_room_before_any_that_counts() {
        let memory = Memory::new(Clock::tokio(), 8);
        let (concurrent, counted) = (policy(1), Rule::sliding_window(1, HOUR));
        let counted = Policy::builder("counted").rule(counted).build().unwrap();
        let admits = |subject| memory.outcome(&counted, &Subject::of(subject).key(), 1).unwrap().wait().is_none();
        let running = lease(&memory, &concurrent, 0).unwrap();
        (1..4).for_each(|subject| _ = memory.give_back(lease(&memory, &concurrent, subject).unwrap(), || false));
        assert!((0..7).all(admits));
        assert!(!(0..7).any(admits), "none of them was replaced");
        assert!(lease(&memory, &concurrent, 0).is_err(), "nor was the one whose call is running");
        memory.give_back(running, || false);
        assert!(lease(&memory, &concurrent, 0).is_ok());
    }

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
        assert_eq!([leases.give_back(first), leases.give_back(first)], [Some(0), None]);
        assert_eq!(wait(&leases, 5), Wait::NONE);
        assert_eq!(leases.wait(0, SECOND_US, 0), Wait::NEVER);
    }
}
