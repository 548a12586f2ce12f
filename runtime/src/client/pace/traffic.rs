//! The calls that are on their way, and which of them look where their rules stand.

use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use crate::subject::Subject;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use crate::system::{Instant, RandomState};

/// Subjects are spread over so many lanes, so that the traffic takes little room however many there are. Of those that share
/// a lane, more calls seem to be on their way, and fewer look.
const LANES: usize = 64;

/// The calls of a lane look at most this often, because a report takes the store longer than a decision does.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The traffic of a pace.
pub(super) struct Traffic {
    lanes: [TrafficLane; LANES],
    seed: RandomState,
}

#[derive(Default)]
struct TrafficLane {
    on_their_way: AtomicU64,
    looked: Mutex<Option<Instant>>,
}

/// A call that is on its way to the other side, from its admission to the first answer.
pub(super) struct OnItsWay {
    traffic: Arc<Traffic>,
    lane: usize,
}

impl Traffic {
    pub(super) fn new() -> Self {
        Self { lanes: std::array::from_fn(|_| TrafficLane::default()), seed: RandomState::default() }
    }

    pub(super) fn lane_of(&self, subject: &Subject) -> usize {
        usize::try_from(self.seed.hash_one(subject) % LANES as u64).unwrap_or_default()
    }

    /// Whether a call of this lane is to look. The next one is to look only later.
    pub(super) fn is_due(&self, lane: usize) -> bool {
        let Some(lane) = self.lanes.get(lane) else { return false };
        let (mut looked, now) = (lock(&lane.looked), Instant::now());
        let is_due = looked.is_none_or(|looked| now.saturating_duration_since(looked) >= LOOK_EVERY);
        if is_due {
            *looked = Some(now);
        }
        is_due
    }

    pub(super) fn depart(self: &Arc<Self>, lane: usize) -> OnItsWay {
        if let Some(lane) = self.lanes.get(lane) {
            lane.on_their_way.fetch_add(1, Ordering::Relaxed);
        }
        OnItsWay { traffic: Arc::clone(self), lane }
    }
}

impl OnItsWay {
    /// Ends the way of the call. Returns how many others of this process are still on theirs.
    pub(super) fn arrive(self) -> u64 {
        let lane = self.traffic.lanes.get(self.lane);
        lane.map_or(0, |lane| lane.on_their_way.load(Ordering::Relaxed).saturating_sub(1))
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        if let Some(lane) = self.traffic.lanes.get(self.lane) {
            lane.on_their_way.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
