//! The calls that are on their way, and which of them look where their rules stand.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::subject::Subject;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use crate::system::{RandomState, TokioInstant};

/// The calls of a subject look at most this often, because a report takes the store longer than a decision does.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// So many subjects are kept without a look for those that have no more calls.
const FEW: usize = 64;

/// The traffic of a pace.
pub(super) struct Traffic {
    subjects: Mutex<TrafficTable>,
}

struct TrafficTable {
    subjects: HashMap<Subject, Arc<SubjectTraffic>, RandomState>,
    sweep_at: usize,
}

#[derive(Default)]
struct SubjectTraffic {
    on_their_way: AtomicU64,
    looked: Mutex<Option<TokioInstant>>,
}

/// A call that was not sent yet.
pub(super) struct Departure {
    traffic: Arc<SubjectTraffic>,
    /// Whether its answer may be asked how much is left, if no other call asks before it departs.
    pub(super) may_look: bool,
}

/// A call that is on its way to the other side, from its admission to the first answer.
pub(super) struct OnItsWay {
    traffic: Arc<SubjectTraffic>,
    /// Whether its answer is asked how much is left.
    pub(super) looks: bool,
}

impl Traffic {
    pub(super) fn new() -> Self {
        let table = TrafficTable { subjects: HashMap::default(), sweep_at: FEW };
        Self { subjects: Mutex::new(table) }
    }

    /// Prepares a call of this subject.
    pub(super) fn prepare(&self, subject: &Subject, now: TokioInstant) -> Departure {
        let traffic = lock(&self.subjects).of(subject, now);
        let may_look = !traffic.has_looked(now);
        Departure { traffic, may_look }
    }
}

impl TrafficTable {
    fn of(&mut self, subject: &Subject, now: TokioInstant) -> Arc<SubjectTraffic> {
        if self.subjects.len() >= self.sweep_at {
            self.subjects.retain(|_, traffic| Arc::strong_count(traffic) > 1 || traffic.has_looked(now));
            self.sweep_at = self.subjects.len().saturating_mul(2).max(FEW);
        }
        Arc::clone(self.subjects.entry(subject.clone()).or_default())
    }
}

impl SubjectTraffic {
    /// Whether a call has looked a short time ago.
    fn has_looked(&self, now: TokioInstant) -> bool {
        is_recent(*lock(&self.looked), now)
    }

    /// Lets a call look, unless another one has looked a short time ago.
    fn looks(&self, now: TokioInstant) -> bool {
        let mut looked = lock(&self.looked);
        let is_due = !is_recent(*looked, now);
        if is_due {
            *looked = Some(now);
        }
        is_due
    }
}

fn is_recent(looked: Option<TokioInstant>, now: TokioInstant) -> bool {
    looked.is_some_and(|looked| now.saturating_duration_since(looked) < LOOK_EVERY)
}

impl Departure {
    /// Lets the call begin its way at this time. If it looks, others do so only later.
    pub(super) fn depart(self, now: TokioInstant) -> OnItsWay {
        let Self { traffic, may_look } = self;
        traffic.on_their_way.fetch_add(1, Ordering::AcqRel);
        let looks = may_look && traffic.looks(now);
        OnItsWay { traffic, looks }
    }
}

impl OnItsWay {
    /// Ends the way of the call. Returns how many others of its subject are still on theirs, in this process.
    pub(super) fn arrive(self) -> u64 {
        self.traffic.on_their_way.load(Ordering::Acquire).saturating_sub(1)
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.traffic.on_their_way.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a call that is prepared now looks once it departs.
    fn looks(traffic: &Traffic, subject: &Subject, now: TokioInstant) -> bool {
        traffic.prepare(subject, now).depart(now).looks
    }

    #[test]
    fn a_call_of_each_subject_looks_every_100_ms() {
        let (traffic, now) = (Traffic::new(), TokioInstant::now());
        let [alice, bob] = ["alice", "bob"].map(Subject::of);
        assert!(looks(&traffic, &alice, now) && looks(&traffic, &bob, now));
        assert!(!looks(&traffic, &alice, now) && !looks(&traffic, &bob, now + LOOK_EVERY / 2));
        let later = now + LOOK_EVERY;
        assert!(looks(&traffic, &alice, later) && !looks(&traffic, &alice, later));
    }

    #[test]
    fn of_calls_that_wait_the_first_that_departs_looks() {
        let (traffic, alice, now) = (Traffic::new(), Subject::of("alice"), TokioInstant::now());
        // The first one may be denied.
        let [denied, second, third] = [(); 3].map(|()| traffic.prepare(&alice, now));
        assert!(denied.may_look && second.may_look && third.may_look);
        drop(denied);
        assert!(second.depart(now).looks && !third.depart(now).looks);
    }

    #[test]
    fn only_calls_of_the_same_subject_are_on_their_way_beside_one_that_arrives() {
        let (traffic, now) = (Traffic::new(), TokioInstant::now());
        let [alice, bob] = ["alice", "bob"].map(Subject::of);
        let depart = |subject| traffic.prepare(subject, now).depart(now);
        let _not_sent = traffic.prepare(&alice, now);
        let (first, second, dropped) = (depart(&alice), depart(&alice), depart(&alice));
        let of_bob = depart(&bob);
        drop(dropped);
        assert_eq!((first.arrive(), second.arrive(), of_bob.arrive()), (1, 0, 0));
    }

    #[test]
    fn subjects_without_calls_are_forgotten() {
        let (traffic, now, busy) = (Traffic::new(), TokioInstant::now(), Subject::of("busy"));
        let on_its_way = traffic.prepare(&busy, now).depart(now);
        for number in 0..10_000 {
            drop(traffic.prepare(&Subject::of(number), now));
        }
        assert!(lock(&traffic.subjects).subjects.len() <= 2 * FEW);
        let another = traffic.prepare(&busy, now).depart(now);
        assert_eq!((on_its_way.arrive(), another.arrive()), (1, 0));
    }
}
