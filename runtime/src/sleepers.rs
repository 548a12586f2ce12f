//! Callers that sleep until there may be room, by their tallies.
//!
//! Calls that end, refunds and resets in this process make room and wake them. Callers look now and then to notice what
//! other processes do.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use crate::call::{Call, TallyId, TallyKey};
use crate::lock::lock;
use crate::micros;
use crate::system::RandomState;

/// How often a caller looks whether another process has made room: under a limit, and under a concurrency limit.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const LOOK_FOR_LEASES_EVERY: Duration = Duration::from_millis(500);

/// If many callers look, each looks less often, so that all together look at most a thousand times a second.
const LEAST_US_EACH: u64 = 1_000;

/// Callers look at the same moments, so that they share round trips.
const TICK_US: u64 = 100_000;

/// The most callers that one event wakes. Others look by themselves.
const MOST_WOKEN: usize = 64;

#[derive(Debug)]
pub(crate) struct Sleepers {
    prefix: String,
    state: Mutex<SleepersByKey>,
    /// The number of sleeping callers: most calls end while it is 0.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct SleepersByKey {
    by_key: HashMap<TallyKey, SleepersOfKey, RandomState>,
    latest: u64,
}

/// The callers that wait for one tally, in order of arrival.
#[derive(Debug, Default)]
struct SleepersOfKey {
    by_number: BTreeMap<u64, Arc<Notify>>,
    /// The number of the caller that was woken last. The next one after it is woken next.
    woken: u64,
}

/// A caller that sleeps now and then, until it is dropped.
#[derive(Debug)]
pub(crate) struct Sleeper<'a> {
    all: &'a Sleepers,
    number: u64,
    keys: Vec<TallyKey>,
    woken: Arc<Notify>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AwaitedRoom {
    Limit,
    Lease,
}

impl Sleepers {
    pub(crate) fn new(prefix: String) -> Self {
        Self { prefix, state: Mutex::default(), count: AtomicUsize::new(0) }
    }

    /// Adds a caller. From now on, it can be woken.
    pub(crate) fn join(&self, keys: Vec<TallyKey>) -> Sleeper<'_> {
        let mut state = lock(&self.state);
        state.latest += 1;
        let mut sleeper = Sleeper { all: self, number: state.latest, keys: Vec::new(), woken: Arc::default() };
        sleeper.add_to(&mut state, keys);
        self.count.fetch_add(1, Ordering::SeqCst);
        sleeper
    }

    /// Wakes the callers that wait for the tallies of the call, as there may be room.
    #[inline]
    pub(crate) fn wake(&self, call: Call<'_>) {
        self.wake_some(call.keys(&self.prefix), MOST_WOKEN);
    }

    /// Wakes the callers that wait for the end of a pause.
    pub(crate) fn wake_for(&self, pause: TallyId<'_>) {
        self.wake_some(std::iter::once(pause.key(&self.prefix)), MOST_WOKEN);
    }

    /// Wakes one caller that waits to be tried after a pause.
    pub(crate) fn wake_one_for(&self, pause: TallyId<'_>) {
        self.wake_some(std::iter::once(pause.key(&self.prefix)), 1);
    }

    /// Whether any caller sleeps.
    #[inline]
    pub(crate) fn are_any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Wakes one caller that waits for the tally of this segment and subject.
    pub(crate) fn wake_one_of(&self, segment: &str, subject: &str) {
        self.wake_some(std::iter::once(TallyKey::new(&self.prefix, segment, subject)), 1);
    }

    /// Wakes one caller for each subject of these leases: a lease that is freed is for one caller.
    #[inline]
    pub(crate) fn wake_one(&self, leases: Call<'_>) {
        self.wake_some(leases.keys(&self.prefix), 1);
    }

    #[inline]
    fn wake_some(&self, keys: impl Iterator<Item = TallyKey>, most: usize) {
        if !self.are_any() {
            return;
        }
        let mut state = lock(&self.state);
        for key in keys {
            if let Some(sleepers) = state.by_key.get_mut(&key) {
                sleepers.wake(most);
            }
        }
    }

    /// Returns when a caller looks next.
    pub(crate) fn look_us(&self, room: AwaitedRoom, now_us: u64) -> u64 {
        let every = match room {
            AwaitedRoom::Limit => LOOK_EVERY,
            AwaitedRoom::Lease => LOOK_FOR_LEASES_EVERY,
        };
        let each_us = LEAST_US_EACH.saturating_mul(self.count.load(Ordering::SeqCst) as u64);
        let next_us = now_us.saturating_add(micros::from_duration(every).max(each_us));
        next_us - next_us % TICK_US
    }
}

impl SleepersOfKey {
    fn wake(&mut self, most: usize) {
        for _ in 0..most.min(self.by_number.len()) {
            let behind = (Bound::Excluded(self.woken), Bound::Unbounded);
            let next = self.by_number.range(behind).next().or_else(|| self.by_number.first_key_value());
            if let Some((number, woken)) = next {
                self.woken = *number;
                woken.notify_one();
            }
        }
    }
}

impl Sleeper<'_> {
    /// Adds more tallies for which the caller waits.
    pub(crate) fn add(&mut self, keys: Vec<TallyKey>) {
        let all = self.all;
        self.add_to(&mut lock(&all.state), keys);
    }

    fn add_to(&mut self, state: &mut SleepersByKey, keys: Vec<TallyKey>) {
        for key in keys {
            let sleepers = state.by_key.entry(key).or_default();
            if sleepers.by_number.insert(self.number, Arc::clone(&self.woken)).is_none() {
                self.keys.push(key);
            }
        }
    }

    /// Waits until the caller is woken. Returns at once if it was woken since the last time.
    pub(crate) async fn woken(&self) {
        self.woken.notified().await;
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        // Whoever leaves without having seen that it was woken hands that on: the room may be for one caller only.
        let is_woken = pin!(self.woken.notified()).enable();
        let mut state = lock(&self.all.state);
        for key in &self.keys {
            if let Some(sleepers) = state.by_key.get_mut(key) {
                sleepers.by_number.remove(&self.number);
                if is_woken {
                    sleepers.wake(1);
                }
                if sleepers.by_number.is_empty() {
                    state.by_key.remove(key);
                }
            }
        }
        self.all.count.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Subject;

    fn key(subject: u32) -> TallyKey {
        TallyKey::new("test", "p", &Subject::of(subject).key())
    }

    fn is_woken(sleeper: &Sleeper<'_>) -> bool {
        use futures_util::FutureExt as _;
        sleeper.woken().now_or_never().is_some()
    }

    #[test]
    fn one_lease_wakes_one_sleeper_in_turn_and_room_wakes_those_of_its_tally() {
        let sleepers = Sleepers::new("test".to_owned());
        let mut all: Vec<_> = (0..4).map(|subject| sleepers.join(vec![key(subject % 2)])).collect();
        let woken = |all: &[Sleeper<'_>]| all.iter().map(is_woken).collect::<Vec<_>>();
        sleepers.wake_some([key(0)].into_iter(), 1);
        assert_eq!(woken(&all), [true, false, false, false]);
        sleepers.wake_some([key(0)].into_iter(), 1);
        assert_eq!(woken(&all), [false, false, true, false]);
        sleepers.wake_some([key(1)].into_iter(), MOST_WOKEN);
        assert_eq!(woken(&all), [false, true, false, true]);
        all[3].add(vec![key(0), key(1)]);
        drop(all.remove(0));
        sleepers.wake_some([key(0), key(1)].into_iter(), MOST_WOKEN);
        assert_eq!(woken(&all), [true, true, true]);
        drop(all);
        assert!(lock(&sleepers.state).by_key.is_empty());
        assert_eq!(sleepers.count.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_sleeper_that_leaves_without_having_seen_that_it_was_woken_wakes_the_next_one() {
        let sleepers = Sleepers::new("test".to_owned());
        let [woken, gone, next, other] = [0, 0, 0, 1].map(|subject| sleepers.join(vec![key(subject)]));
        sleepers.wake_some([key(0)].into_iter(), 2);
        assert!(is_woken(&woken));
        drop(woken);
        assert!(!is_woken(&next));
        drop(gone);
        assert!(is_woken(&next) && !is_woken(&other));
    }

    #[test]
    fn a_hundred_thousand_sleepers_of_one_tally_leave_in_no_time() {
        let sleepers = Sleepers::new("test".to_owned());
        let all: Vec<_> = (0..100_000).map(|_| sleepers.join(vec![key(0)])).collect();
        let began = std::time::Instant::now();
        // The last ones first: the slowest order for a linear search.
        all.into_iter().rev().for_each(drop);
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }

    #[test]
    fn sleepers_look_within_two_seconds_and_the_more_there_are_the_less_often() {
        let sleepers = Sleepers::new("test".to_owned());
        let look_us = |room| sleepers.look_us(room, 10_000_000) - 10_000_000;
        assert_eq!([AwaitedRoom::Limit, AwaitedRoom::Lease].map(look_us), [2_000_000, 500_000]);
        let all: Vec<_> = (0..10_000).map(|subject| sleepers.join(vec![key(subject)])).collect();
        assert_eq!([AwaitedRoom::Limit, AwaitedRoom::Lease].map(look_us), [10_000_000, 10_000_000]);
        drop(all);
    }
}
