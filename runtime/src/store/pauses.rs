//! The pauses of subjects that this process knows of: those that it was told, and those that the store has answered with.
//!
//! In memory, the table is all there is. Beside Redis, a pause that this process was told holds here even if it could not be
//! stored; one that is stored is asked for again from time to time, because another process may have ended it. No flood of
//! subjects removes a pause: each ends by itself.

use std::collections::HashMap;
use std::sync::Arc;

use crate::call::TallyId;
use crate::clock::is_set_back;
use crate::subject::SubjectKey;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, lock};
use crate::system::RandomState;

/// The table is first searched for pauses that have ended when it has this many.
const FEW: usize = 64;

/// The pauses that this process knows of.
pub(crate) struct Pauses {
    table: Mutex<Table>,
    /// Read without the lock, because most often there are none.
    len: AtomicUsize,
}

struct Table {
    pauses: HashMap<(Arc<str>, SubjectKey), Pause, RandomState>,
    /// Pauses that have ended are removed when there are this many.
    sweep_at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_field_names, reason = "they are times")]
pub(crate) struct Pause {
    since_us: u64,
    ends_us: u64,
    asks_from_us: u64,
}

/// What this process knows of the pause of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownPause {
    /// The microseconds until it ends.
    pub(crate) left_us: u64,
    /// Whether the store is to be asked, because another process may have ended it.
    pub(crate) is_doubted: bool,
}

impl Pause {
    /// A pause of which the store knows nothing, so that it need not be asked.
    pub(crate) const NOT_STORED: u64 = u64::MAX;

    /// Returns a pause that begins now. From `asks_from_us` on, the store is asked whether it was ended.
    pub(crate) fn new(now_us: u64, length_us: u64, asks_from_us: u64) -> Self {
        Self { since_us: now_us, ends_us: now_us.saturating_add(length_us), asks_from_us }
    }

    fn known(self, now_us: u64) -> Option<KnownPause> {
        // If the clock was set back, nobody knows how much is left.
        let is_over = now_us >= self.ends_us || is_set_back(self.since_us, now_us);
        let known = || KnownPause { left_us: self.ends_us - now_us, is_doubted: now_us >= self.asks_from_us };
        (!is_over).then(known)
    }
}

impl Pauses {
    pub(crate) fn new() -> Self {
        let table = Table { pauses: HashMap::default(), sweep_at: FEW };
        Self { table: Mutex::new(table), len: AtomicUsize::new(0) }
    }

    /// Returns what is known of the pause of this subject; `None` if it is not paused.
    #[inline]
    pub(crate) fn find(&self, id: TallyId<'_>, now_us: u64) -> Option<KnownPause> {
        if self.len.load(Ordering::Relaxed) == 0 { None } else { self.find_in_table(id, now_us) }
    }

    #[cold]
    fn find_in_table(&self, id: TallyId<'_>, now_us: u64) -> Option<KnownPause> {
        lock(&self.table).pauses.get(&key(id))?.known(now_us)
    }

    /// Adds a pause that this process was told, unless the subject is paused for longer.
    pub(crate) fn add(&self, id: TallyId<'_>, pause: Pause) {
        self.change(pause.since_us, |table| {
            let known = table.pauses.entry(key(id)).or_insert(pause);
            if known.known(pause.since_us).is_none() || known.ends_us < pause.ends_us {
                *known = pause;
            }
        });
    }

    /// Records a pause that the store has answered with, in place of what was known.
    pub(crate) fn replace(&self, id: TallyId<'_>, pause: Pause) {
        self.change(pause.since_us, |table| _ = table.pauses.insert(key(id), pause));
    }

    pub(crate) fn remove(&self, id: TallyId<'_>) {
        self.change(0, |table| _ = table.pauses.remove(&key(id)));
    }

    fn change(&self, now_us: u64, change: impl FnOnce(&mut Table)) {
        let mut table = lock(&self.table);
        if table.pauses.len() >= table.sweep_at {
            table.pauses.retain(|_, pause| pause.known(now_us).is_some());
            table.sweep_at = FEW.max(2 * table.pauses.len());
        }
        change(&mut table);
        self.len.store(table.pauses.len(), Ordering::Relaxed);
    }
}

fn key(id: TallyId<'_>) -> (Arc<str>, SubjectKey) {
    (Arc::clone(&id.group.segment), *id.subject)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::Rule;

    use super::*;
    use crate::policy::Policy;
    use crate::subject::Subject;

    const SECOND: u64 = 1_000_000;

    fn pausable() -> Policy {
        Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(1))).pausable().build().unwrap()
    }

    /// How many microseconds a subject is still paused.
    fn left(pauses: &Pauses, policy: &Policy, subject: &SubjectKey, now_us: u64) -> Option<u64> {
        let group = policy.pause_group().unwrap();
        pauses.find(TallyId { group, subject }, now_us).map(|known| known.left_us)
    }

    #[test]
    fn a_pause_lasts_until_its_end_and_a_shorter_one_leaves_it() {
        let (pauses, policy, subject) = (Pauses::new(), pausable(), Subject::of("s").key());
        let id = TallyId { group: policy.pause_group().unwrap(), subject: &subject };
        let now = 100 * SECOND;
        pauses.add(id, Pause::new(now, 10 * SECOND, Pause::NOT_STORED));
        pauses.add(id, Pause::new(now + SECOND, 2 * SECOND, Pause::NOT_STORED));
        assert_eq!(left(&pauses, &policy, &subject, now + SECOND), Some(9 * SECOND));
        assert_eq!(left(&pauses, &policy, &subject, now + 10 * SECOND - 1), Some(1));
        assert_eq!(left(&pauses, &policy, &subject, now + 10 * SECOND), None);
        pauses.add(id, Pause::new(now + 10 * SECOND, SECOND, Pause::NOT_STORED));
        assert_eq!(left(&pauses, &policy, &subject, now + 10 * SECOND), Some(SECOND));
        pauses.remove(id);
        assert_eq!(left(&pauses, &policy, &subject, now + 10 * SECOND), None);
    }

    #[test]
    fn a_pause_is_over_when_the_clock_was_set_back() {
        let (pauses, policy, subject) = (Pauses::new(), pausable(), Subject::of("s").key());
        let id = TallyId { group: policy.pause_group().unwrap(), subject: &subject };
        pauses.add(id, Pause::new(100 * SECOND, SECOND, Pause::NOT_STORED));
        assert_eq!(left(&pauses, &policy, &subject, 50 * SECOND), None);
    }

    #[test]
    fn many_pauses_are_kept_until_they_end_and_then_leave_the_table() {
        let (pauses, policy) = (Pauses::new(), pausable());
        let group = policy.pause_group().unwrap();
        let subjects: Vec<_> = (0..10_000).map(|number| Subject::of(number).key()).collect();
        for subject in &subjects {
            pauses.add(TallyId { group, subject }, Pause::new(100 * SECOND, SECOND, Pause::NOT_STORED));
        }
        assert!(subjects.iter().all(|subject| left(&pauses, &policy, subject, 100 * SECOND).is_some()));
        for subject in &subjects {
            pauses.add(TallyId { group, subject }, Pause::new(102 * SECOND, SECOND, Pause::NOT_STORED));
            pauses.remove(TallyId { group, subject });
        }
        assert!(lock(&pauses.table).pauses.len() < 10_000);
    }
}
