//! The calls that are on their way, and which of them look where their rules stand.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::subject::Subject;
use crate::sync::{Mutex, lock};
use crate::system::{Instant, RandomState};

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
    looked: Option<Instant>,
}

/// A call that is on its way to the other side, from its admission to the first answer.
pub(super) struct OnItsWay {
    traffic: Arc<Traffic>,
    subject: Subject,
}

impl Traffic {
    pub(super) fn new() -> Self {
        let table = TrafficTable { subjects: HashMap::default(), sweep_at: FEW };
        Self { subjects: Mutex::new(table) }
    }

    /// Whether a call of this subject is to look. The next one is to look only later.
    pub(super) fn is_due(&self, subject: &Subject, now: Instant) -> bool {
        let mut table = lock(&self.subjects);
        let traffic = table.of(subject, now);
        let is_due = !traffic.has_looked(now);
        if is_due {
            traffic.looked = Some(now);
        }
        is_due
    }

    pub(super) fn depart(self: &Arc<Self>, subject: &Subject) -> OnItsWay {
        lock(&self.subjects).of(subject, Instant::now()).on_their_way += 1;
        OnItsWay { traffic: Arc::clone(self), subject: subject.clone() }
    }
}

impl TrafficTable {
    fn of(&mut self, subject: &Subject, now: Instant) -> &mut SubjectTraffic {
        if self.subjects.len() >= self.sweep_at {
            self.subjects.retain(|_, traffic| traffic.on_their_way > 0 || traffic.has_looked(now));
            self.sweep_at = self.subjects.len().saturating_mul(2).max(FEW);
        }
        self.subjects.entry(subject.clone()).or_default()
    }
}

impl SubjectTraffic {
    /// Whether a call has looked a short time ago.
    fn has_looked(&self, now: Instant) -> bool {
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

    #[test]
    fn a_call_of_each_subject_looks_every_100_ms() {
        let (traffic, now) = (Traffic::new(), Instant::now());
        let [alice, bob] = ["alice", "bob"].map(Subject::of);
        assert!(traffic.is_due(&alice, now) && traffic.is_due(&bob, now));
        assert!(!traffic.is_due(&alice, now) && !traffic.is_due(&bob, now + LOOK_EVERY / 2));
        let later = now + LOOK_EVERY;
        assert!(traffic.is_due(&alice, later) && !traffic.is_due(&alice, later));
    }

    #[test]
    fn only_calls_of_the_same_subject_are_on_their_way_beside_one_that_arrives() {
        let traffic = Arc::new(Traffic::new());
        let [alice, bob] = ["alice", "bob"].map(Subject::of);
        let (first, second, dropped) = (traffic.depart(&alice), traffic.depart(&alice), traffic.depart(&alice));
        let of_bob = traffic.depart(&bob);
        drop(dropped);
        assert_eq!((first.arrive(), second.arrive(), of_bob.arrive()), (1, 0, 0));
    }

    #[test]
    fn subjects_without_calls_are_forgotten() {
        let traffic = Arc::new(Traffic::new());
        let on_its_way = traffic.depart(&Subject::of("busy"));
        for number in 0..10_000 {
            drop(traffic.depart(&Subject::of(number)));
        }
        assert!(lock(&traffic.subjects).subjects.len() <= 2 * FEW);
        assert_eq!((on_its_way.arrive(), traffic.depart(&Subject::of("busy")).arrive()), (0, 0));
    }
}
