//! The calls that are on their way, and which of them look where their rules stand.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::subject::Subject;
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
    subjects: HashMap<Subject, SubjectTraffic, RandomState>,
    sweep_at: usize,
}

#[derive(Default)]
struct SubjectTraffic {
    on_their_way: u64,
    looked: Option<TokioInstant>,
}

/// A call that is on its way to the other side, from its admission to the first answer.
pub(super) struct OnItsWay {
    traffic: Arc<Traffic>,
    subject: Subject,
    /// Whether its answer is asked how much is left.
    pub(super) looks: bool,
}

impl Traffic {
    pub(super) fn new() -> Self {
        let table = TrafficTable { subjects: HashMap::default(), sweep_at: FEW };
        Self { subjects: Mutex::new(table) }
    }

    /// Whether a call of this subject may look at what is left, if none does before it departs.
    pub(super) fn may_look(&self, subject: &Subject, now: TokioInstant) -> bool {
        lock(&self.subjects).subjects.get(subject).is_none_or(|traffic| !traffic.has_looked(now))
    }

    /// Lets a call begin its way at this time. If it looks, others do so only later.
    pub(super) fn depart(self: &Arc<Self>, subject: &Subject, now: TokioInstant, may_look: bool) -> OnItsWay {
        let mut table = lock(&self.subjects);
        let traffic = table.of(subject, now);
        traffic.on_their_way += 1;
        let looks = may_look && !traffic.has_looked(now);
        if looks {
            traffic.looked = Some(now);
        }
        OnItsWay { traffic: Arc::clone(self), subject: subject.clone(), looks }
    }
}

impl TrafficTable {
    fn of(&mut self, subject: &Subject, now: TokioInstant) -> &mut SubjectTraffic {
        if self.subjects.len() >= self.sweep_at {
            self.subjects.retain(|_, traffic| traffic.on_their_way > 0 || traffic.has_looked(now));
            self.sweep_at = self.subjects.len().saturating_mul(2).max(FEW);
        }
        self.subjects.entry(subject.clone()).or_default()
    }
}

impl SubjectTraffic {
    /// Whether a call has looked a short time ago.
    fn has_looked(&self, now: TokioInstant) -> bool {
        self.looked.is_some_and(|looked| now.saturating_duration_since(looked) < LOOK_EVERY)
    }
}

impl OnItsWay {
    /// Ends the way of the call. Returns how many others of its subject are still on theirs, in this process.
    pub(super) fn arrive(self) -> u64 {
        let table = lock(&self.traffic.subjects);
        table.subjects.get(&self.subject).map_or(0, |traffic| traffic.on_their_way.saturating_sub(1))
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        if let Some(traffic) = lock(&self.traffic.subjects).subjects.get_mut(&self.subject) {
            traffic.on_their_way = traffic.on_their_way.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a call that is prepared now looks once it departs.
    fn looks(traffic: &Arc<Traffic>, subject: &Subject, now: TokioInstant) -> bool {
        let may_look = traffic.may_look(subject, now);
        traffic.depart(subject, now, may_look).looks
    }

    #[test]
    fn a_call_of_each_subject_looks_every_100_ms() {
        let (traffic, now) = (Arc::new(Traffic::new()), TokioInstant::now());
        let [alice, bob] = ["alice", "bob"].map(Subject::of);
        assert!(looks(&traffic, &alice, now) && looks(&traffic, &bob, now));
        assert!(!looks(&traffic, &alice, now) && !looks(&traffic, &bob, now + LOOK_EVERY / 2));
        let later = now + LOOK_EVERY;
        assert!(looks(&traffic, &alice, later) && !looks(&traffic, &alice, later));
    }

    #[test]
    fn of_calls_that_wait_the_first_that_departs_looks() {
        let (traffic, alice, now) = (Arc::new(Traffic::new()), Subject::of("alice"), TokioInstant::now());
        assert!(traffic.may_look(&alice, now) && traffic.may_look(&alice, now), "the first one may be denied");
        assert!(traffic.depart(&alice, now, true).looks);
        assert!(!traffic.depart(&alice, now, true).looks);
    }

    #[test]
    fn only_calls_of_the_same_subject_are_on_their_way_beside_one_that_arrives() {
        let (traffic, now) = (Arc::new(Traffic::new()), TokioInstant::now());
        let [alice, bob] = ["alice", "bob"].map(Subject::of);
        let [first, second, dropped] = [(); 3].map(|()| traffic.depart(&alice, now, false));
        let of_bob = traffic.depart(&bob, now, false);
        drop(dropped);
        assert_eq!((first.arrive(), second.arrive(), of_bob.arrive()), (1, 0, 0));
    }

    #[test]
    fn subjects_without_calls_are_forgotten() {
        let (traffic, now, busy) = (Arc::new(Traffic::new()), TokioInstant::now(), Subject::of("busy"));
        let on_its_way = traffic.depart(&busy, now, false);
        for number in 0..10_000 {
            drop(traffic.depart(&Subject::of(number), now, false));
        }
        assert!(lock(&traffic.subjects).subjects.len() <= 2 * FEW);
        assert_eq!((on_its_way.arrive(), traffic.depart(&busy, now, false).arrive()), (0, 0));
    }
}
