//! The pauses of subjects that this process knows of: those that were said to it, and those that it has heard of from the store.
//!
//! In memory, the table is all there is. Beside Redis, a pause that was said here holds here even if it could not be stored; one
//! that is stored is asked for again from time to time, because another process may have ended it. No flood of subjects
//! removes a pause that only this process knows: each ends by itself.
//!
//! For as long again after a pause, one call at a time is tried: a probe, which has the place until it ends or for
//! [`PROBE_US`]. Beside Redis, the table has the place only while Redis is away.

mod pause;

use std::sync::Arc;

use hashbrown::HashTable;

use self::pause::Pause;
pub(crate) use self::pause::{KnownPause, PROBE_US, PauseDue, PauseMoment, PauseToSend, ProbeStep};
use crate::call::{LeaseName, TallyId};
use crate::decision::{Pausable, PauseSource};
use crate::policy::Policy;
use crate::subject::SubjectKey;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, lock};
use crate::system::RandomState;

/// The table is first searched for pauses that have ended when it has this many.
const FEW: usize = 64;

/// With so many pauses in the table, no more are added that the store knows, too.
const MOST_STORED: usize = 10_000;

/// The shortest time between two attempts to store a pause, in microseconds. A pause that is prolonged by less is sent later:
/// many answers may say the same number of seconds, one after the other.
const SEND_EVERY_US: u64 = 1_000_000;

/// The pauses that this process knows of.
pub(crate) struct Pauses {
    table: Mutex<PauseTable>,
    /// Read without the lock, because most often there are none.
    len: AtomicUsize,
    changes: AtomicU64,
    /// For how many microseconds an answer of the store is believed.
    trust_us: u64,
    seed: RandomState,
}

struct PauseTable {
    subjects: HashTable<PausedSubject>,
    /// Those of subjects that are open for all again are removed when there are this many.
    sweep_at: usize,
}

struct PausedSubject {
    hash: u64,
    segment: Arc<str>,
    subject: SubjectKey,
    pause: Pause,
    /// The policy by which the pause is sent. It may be in use nowhere else by then.
    policy: Option<Policy>,
}

impl Pauses {
    /// An answer of the store is believed for `trust_us`.
    pub(crate) fn new(trust_us: u64) -> Self {
        let table = PauseTable { subjects: HashTable::new(), sweep_at: FEW };
        Self {
            table: Mutex::new(table),
            len: AtomicUsize::new(0),
            changes: AtomicU64::new(0),
            trust_us,
            seed: RandomState::default(),
        }
    }

    /// Returns the moment of a question that is asked now.
    #[inline]
    pub(crate) fn moment(&self) -> PauseMoment {
        PauseMoment(self.changes.load(Ordering::Acquire))
    }

    /// Returns what is known of the pause of this subject; `None` if it is not paused. The clock is read only if there are
    /// pauses.
    #[inline]
    pub(crate) fn find(&self, id: TallyId<'_>, now_us: impl FnOnce() -> u64) -> Option<KnownPause> {
        if self.is_empty() { None } else { self.find_in_table(id, now_us()) }
    }

    #[cold]
    fn find_in_table(&self, id: TallyId<'_>, now_us: u64) -> Option<KnownPause> {
        self.change(id, now_us, |pause, _| *pause).map(|pause| pause.known(now_us))
    }

    /// Returns a pause that was said here and that the store may not know, and who has said it.
    pub(crate) fn said(&self, id: TallyId<'_>, now_us: u64) -> Option<(KnownPause, PauseSource)> {
        let pause = self.change(id, now_us, |pause, _| *pause).filter(|pause| !pause.is_stored())?;
        Some((pause.known(now_us), pause.source))
    }

    /// Adds a pause that is said now, unless the subject is paused for longer. Returns what is to be sent to the store.
    pub(crate) fn say(&self, id: TallyId<'_>, now_us: u64, length_us: u64, source: PauseSource) -> PauseToSend {
        self.change(id, now_us, |pause, changed| {
            let said = Pause::said(changed, now_us, length_us, source, self.send_from_us(now_us));
            pause.insert(Pause::longer(*pause, said, now_us)).to_send_after(said, now_us)
        })
    }

    /// Adds a pause that is said now, as [`say`](Self::say) does. Returns what is to be sent at once: nothing if the store knows a
    /// pause that ends as late, or less than [`SEND_EVERY_US`] earlier, or if one is on its way. The rest is sent later.
    pub(crate) fn say_if_new(
        &self,
        id: TallyId<'_>,
        now_us: u64,
        length_us: u64,
        source: PauseSource,
    ) -> Option<PauseToSend> {
        self.change(id, now_us, |pause, changed| {
            let said = Pause::said(changed, now_us, length_us, source, self.send_from_us(now_us));
            // After a while, another process may have ended the pause that the store knew.
            let known = pause.filter(|known| known.known(now_us).due == PauseDue::Nothing);
            let prolonged_us = known.map_or(u64::MAX, |known| said.ends_us.saturating_sub(known.ends_us));
            if prolonged_us == 0 {
                return None;
            }
            let pause = pause.insert(Pause::longer(*pause, said, now_us));
            if prolonged_us >= SEND_EVERY_US {
                return Some(pause.to_send_after(said, now_us));
            }
            pause.send_with(known);
            None
        })
    }

    /// Returns what is to be sent again, if that is due. It is due again only later.
    pub(crate) fn begin_sending(&self, id: TallyId<'_>, now_us: u64) -> Option<PauseToSend> {
        self.begin_sending_if(id, now_us, |pause| pause.known(now_us).due == PauseDue::Send)
    }

    /// Returns what is to be sent now, if the store may not know of the pause and no message about it is on its way.
    pub(crate) fn begin_sending_now(&self, id: TallyId<'_>, now_us: u64) -> Option<PauseToSend> {
        self.begin_sending_if(id, now_us, |pause| pause.is_unsent(now_us))
    }

    fn begin_sending_if(&self, id: TallyId<'_>, now_us: u64, is_due: impl Fn(&Pause) -> bool) -> Option<PauseToSend> {
        self.change(id, now_us, |pause, changed| {
            let pause = pause.as_mut().filter(|pause| is_due(pause))?;
            pause.begin_sending(changed, self.send_from_us(now_us));
            Some(pause.to_send(now_us))
        })
    }

    /// Keeps the policy of a pause until the store knows of that.
    pub(crate) fn keep_policy(&self, id: TallyId<'_>, policy: &Policy) {
        let hash = id.hash(&self.seed);
        if let Some(paused) = lock(&self.table).find(hash, id).filter(|paused| !paused.pause.is_stored()) {
            paused.policy = Some(policy.clone());
        }
    }

    /// Returns all pauses of which the store may not know, and no message about them is on its way.
    pub(crate) fn unsent(&self, now_us: u64) -> Vec<Pausable> {
        let table = lock(&self.table);
        let unsent = table.subjects.iter().filter(|paused| paused.pause.is_unsent(now_us));
        unsent.filter_map(|paused| Pausable::new(paused.policy.as_ref()?, Some(&paused.subject)).ok()).collect()
    }

    /// Notes that the message about this change of the pause has failed. A later change is sent by another message.
    pub(crate) fn note_unsent(&self, id: TallyId<'_>, changed: PauseMoment, now_us: u64) {
        self.change(id, now_us, |pause, _| {
            if let Some(pause) = pause.as_mut().filter(|pause| pause.changed == changed) {
                pause.stop_sending();
            }
        });
    }

    /// When a pause that is sent now is sent again, unless the store has confirmed it by then.
    fn send_from_us(&self, now_us: u64) -> u64 {
        now_us.saturating_add(self.trust_us.max(SEND_EVERY_US))
    }

    /// Notes for how long the store has said that the subject is paused; 0 if it is not. It was asked at this moment.
    pub(crate) fn hear(&self, id: TallyId<'_>, asked: PauseMoment, now_us: u64, left_us: u64) {
        if left_us == 0 && self.is_empty() {
            return;
        }
        let ask_from_us = now_us.saturating_add(self.trust_us);
        self.change(id, now_us, |pause, changed| {
            if pause.is_none_or(|known| known.yields_to(now_us.saturating_add(left_us), asked)) {
                *pause = (left_us > 0).then(|| Pause::heard(*pause, changed, now_us, left_us, ask_from_us));
            }
        });
    }

    /// Notes that the store has said that the pause is over, and one call at a time is tried.
    pub(crate) fn hear_of_probe(&self, id: TallyId<'_>, asked: PauseMoment, now_us: u64) {
        if self.is_empty() {
            return;
        }
        self.change(id, now_us, |pause, changed| {
            if let Some(pause) = pause {
                pause.end(changed, asked, now_us);
            }
        });
    }

    /// Takes a step of a probe in this process. Returns what was known before the step: a free place was taken. Returns
    /// `None` if the subject is open for all now.
    pub(crate) fn probe(&self, id: TallyId<'_>, now_us: u64, name: LeaseName, step: ProbeStep) -> Option<KnownPause> {
        self.change(id, now_us, |pause, _| {
            let before = (*pause)?;
            *pause = before.probed(now_us, name, step);
            pause.is_some().then(|| before.known(now_us))
        })
    }

    pub(crate) fn remove(&self, id: TallyId<'_>, now_us: u64) {
        self.change(id, now_us, |pause, _| *pause = None);
    }

    fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }

    /// Changes the pause of a subject, which is `None` if the subject is open for all.
    fn change<T>(&self, id: TallyId<'_>, now_us: u64, change: impl FnOnce(&mut Option<Pause>, PauseMoment) -> T) -> T {
        let hash = id.hash(&self.seed);
        let mut table = lock(&self.table);
        let moment = PauseMoment(self.changes.fetch_add(1, Ordering::AcqRel) + 1);
        let mut pause = table.find(hash, id).map(|known| known.pause).filter(|known| !known.is_open(now_us));
        let changed = change(&mut pause, moment);
        match pause {
            Some(pause) => table.set(hash, id, pause, now_us),
            None => table.remove(hash, id),
        }
        self.len.store(table.subjects.len(), Ordering::Release);
        changed
    }
}

impl PauseTable {
    fn find(&mut self, hash: u64, id: TallyId<'_>) -> Option<&mut PausedSubject> {
        self.subjects.find_mut(hash, |paused| paused.matches(id))
    }

    fn set(&mut self, hash: u64, id: TallyId<'_>, pause: Pause, now_us: u64) {
        if let Some(known) = self.find(hash, id) {
            known.pause = pause;
            if pause.is_stored() {
                known.policy = None;
            }
            return;
        }
        if self.subjects.len() >= self.sweep_at {
            self.subjects.retain(|paused| !paused.pause.is_open(now_us));
            self.sweep_at = FEW.max(2 * self.subjects.len());
        }
        if self.subjects.len() < MOST_STORED || !pause.is_stored() {
            let segment = Arc::clone(&id.group.segment);
            let paused = PausedSubject { hash, segment, subject: *id.subject, pause, policy: None };
            self.subjects.insert_unique(hash, paused, |paused| paused.hash);
        }
    }

    fn remove(&mut self, hash: u64, id: TallyId<'_>) {
        if let Ok(paused) = self.subjects.find_entry(hash, |paused| paused.matches(id)) {
            paused.remove();
        }
    }
}

impl PausedSubject {
    fn matches(&self, id: TallyId<'_>) -> bool {
        self.subject == *id.subject && id.group.has_segment(&self.segment)
    }
}

#[cfg(test)]
mod tests;
