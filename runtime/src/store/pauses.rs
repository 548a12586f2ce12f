//! The pauses of subjects that this process knows of: those that it was told, and those that the store has answered with.
//!
//! In memory, the table is all there is. Beside Redis, a pause that this process was told holds here even if it could not be
//! stored; one that is stored is asked for again from time to time, because another process may have ended it. No flood of
//! subjects removes a pause that only this process knows: each ends by itself.
//!
//! For as long again after a pause, one call at a time is tried: a probe, which has the place until it ends or for
//! [`PROBE_US`]. Beside Redis, the table has the place only while Redis is away.

use std::sync::Arc;

use hashbrown::HashTable;

use super::answer::Outcome;
use crate::call::{LeaseName, TallyId};
use crate::clock::is_set_back;
use crate::decision::{Pausable, PauseSource};
use crate::policy::Policy;
use crate::subject::SubjectKey;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, lock};
use crate::system::RandomState;
use crate::wait::Wait;

/// The table is first searched for pauses that have ended when it has this many.
const FEW: usize = 64;

/// With so many pauses in the table, no more are added that the store knows, too.
const MOST_STORED: usize = 10_000;

/// The shortest time between two attempts to store a pause. A pause that is prolonged by less is stored later: many answers
/// may say the same number of seconds, one after the other.
const STORE_EVERY_US: u64 = 1_000_000;

/// For how long a probe has its place at most, in microseconds. A call that takes longer is tried beside the next one.
pub(crate) const PROBE_US: u64 = 60_000_000;

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
    /// The policy by which the store is told. It may be in use nowhere else by then.
    policy: Option<Policy>,
}

/// A moment between two changes of the table. An answer of the store says nothing about changes after its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PauseMoment(u64);

#[derive(Clone, Copy, Debug)]
struct Pause {
    changed: PauseMoment,
    since_us: u64,
    ends_us: u64,
    known_by: KnownBy,
    source: PauseSource,
    probe: Option<Probe>,
}

/// The call that is tried after a pause.
#[derive(Clone, Copy, Debug)]
struct Probe {
    name: LeaseName,
    /// Until then, it has the place.
    until_us: u64,
}

#[derive(Clone, Copy, Debug)]
enum KnownBy {
    /// The store, which is asked again from then on.
    Store { ask_from_us: u64 },
    /// This process, and perhaps not the store, which is told again from then on. While it `is_being_told`, a message about the
    /// whole pause is on its way.
    Process { tell_from_us: u64, is_being_told: bool },
}

/// What this process knows of the pause of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownPause {
    /// The microseconds until it ends; of one that is over, until the place of the probe is free.
    pub(crate) left_us: u64,
    pub(crate) due: PauseDue,
}

impl KnownPause {
    /// What the pause makes of a call.
    pub(crate) fn outcome(self) -> Outcome {
        let retry_after = Wait::us(self.left_us);
        match self.due {
            PauseDue::Probe => Outcome::Probing { retry_after },
            PauseDue::Nothing | PauseDue::Ask | PauseDue::Tell => Outcome::Paused { retry_after },
        }
    }
}

/// What is to be done about a known pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PauseDue {
    Nothing,
    /// The store is to be asked, because another process may have ended the pause.
    Ask,
    /// The store is to be told, because it may not know of the pause.
    Tell,
    /// The pause is over, and one call at a time is tried.
    Probe,
}

/// What a probe does with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeStep {
    /// Takes it, if it is free.
    Take,
    /// Gives it back, and lets one of those who wait have it.
    GiveBack,
    /// Gives it back, because the rules deny the call.
    Decline,
    /// The call has succeeded: opens the subject for all.
    Open,
}

/// A pause that the store is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToldPause {
    pub(crate) length_us: u64,
    pub(crate) source: PauseSource,
    /// When the process was told. The answer of the store is heard with it.
    pub(crate) told: PauseMoment,
}

impl Pause {
    /// Whether the subject is open for all again.
    fn is_open(&self, now_us: u64) -> bool {
        // If the clock was set back, nobody knows how much is left.
        now_us >= self.opens_us() || is_set_back(self.since_us, now_us)
    }

    fn opens_us(&self) -> u64 {
        self.ends_us.saturating_add(self.length_us())
    }

    fn length_us(&self) -> u64 {
        self.ends_us.saturating_sub(self.since_us)
    }

    fn is_over(&self, now_us: u64) -> bool {
        now_us >= self.ends_us
    }

    /// Whether it holds, and the store may not know of it and is not being told.
    fn is_untold(&self, now_us: u64) -> bool {
        matches!(self.known_by, KnownBy::Process { is_being_told: false, .. }) && !self.is_over(now_us)
    }

    fn stop_being_told(&mut self) {
        if let KnownBy::Process { is_being_told, .. } = &mut self.known_by {
            *is_being_told = false;
        }
    }

    fn known(&self, now_us: u64) -> KnownPause {
        if self.is_over(now_us) {
            let until_us = self.probe.map_or(0, |probe| probe.until_us.min(self.opens_us()));
            return KnownPause { left_us: until_us.saturating_sub(now_us), due: PauseDue::Probe };
        }
        let due = match self.known_by {
            KnownBy::Store { ask_from_us } if now_us >= ask_from_us => PauseDue::Ask,
            KnownBy::Process { tell_from_us, .. } if now_us >= tell_from_us => PauseDue::Tell,
            _ => PauseDue::Nothing,
        };
        KnownPause { left_us: self.ends_us.saturating_sub(now_us), due }
    }

    fn told(&self, now_us: u64) -> ToldPause {
        let Self { source, changed: told, .. } = *self;
        ToldPause { length_us: self.ends_us.saturating_sub(now_us), source, told }
    }

    /// Returns what the store is to be told after this process was told of a pause, which may have prolonged this one.
    fn telling(&self, told: Self, now_us: u64) -> ToldPause {
        match self.known_by {
            KnownBy::Process { .. } => self.told(now_us),
            // The store knows a longer one, unless another process has ended that.
            KnownBy::Store { .. } => told.told(now_us),
        }
    }

    /// Returns the longer one of this pause and another that this process was told. The time after it in which one call at a time is
    /// tried gets no shorter.
    fn or_told(self, told: Self) -> Self {
        if self.ends_us < told.ends_us {
            return Self { since_us: told.since_us.min(told.ends_us.saturating_sub(self.length_us())), ..told };
        }
        let known_by = match self.known_by {
            // What was told is honoured without a question.
            KnownBy::Store { ask_from_us } => KnownBy::Store { ask_from_us: ask_from_us.max(told.ends_us) },
            KnownBy::Process { .. } => told.known_by,
        };
        Self { changed: told.changed, known_by, ..self }
    }

    /// Whether an answer of the store replaces this pause: one that lasts as long, or one to a question about it. Until the
    /// store has confirmed what this process was told, nothing shortens that.
    fn yields_to(&self, answered_ends_us: u64, asked: PauseMoment) -> bool {
        let is_confirmed = matches!(self.known_by, KnownBy::Store { .. });
        answered_ends_us >= self.ends_us || is_confirmed && self.changed <= asked
    }
}

/// Returns the longer one of a pause that may be known and one that this process was told.
fn longer(known: Option<Pause>, told: Pause, now_us: u64) -> Pause {
    known.filter(|known| !known.is_over(now_us)).map_or(told, |known| known.or_told(told))
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

    /// Returns a pause that this process was told and the store may not know, and who has said it.
    pub(crate) fn told(&self, id: TallyId<'_>, now_us: u64) -> Option<(KnownPause, PauseSource)> {
        let pause = self.change(id, now_us, |pause, _| *pause)?;
        matches!(pause.known_by, KnownBy::Process { .. }).then(|| (pause.known(now_us), pause.source))
    }

    /// Adds a pause that this process was told, unless the subject is paused for longer. Returns what the store is to be
    /// told.
    pub(crate) fn tell(&self, id: TallyId<'_>, now_us: u64, length_us: u64, source: PauseSource) -> ToldPause {
        self.change(id, now_us, |pause, changed| {
            let told = self.told_now(changed, now_us, length_us, source);
            pause.insert(longer(*pause, told, now_us)).telling(told, now_us)
        })
    }

    /// Adds a pause that this process was told, as [`tell`](Self::tell) does. Returns what the store is to be told at once.
    /// That is nothing if the store knows, or is being told of, a pause that ends as late, or less than
    /// [`STORE_EVERY_US`] earlier. The store is told of the rest later.
    pub(crate) fn tell_if_new(
        &self,
        id: TallyId<'_>,
        now_us: u64,
        length_us: u64,
        source: PauseSource,
    ) -> Option<ToldPause> {
        self.change(id, now_us, |pause, changed| {
            let told = self.told_now(changed, now_us, length_us, source);
            // After a while, another process may have ended the pause that the store knew.
            let known = pause.filter(|known| known.known(now_us).due == PauseDue::Nothing);
            let prolonged_us = known.map_or(u64::MAX, |known| told.ends_us.saturating_sub(known.ends_us));
            if prolonged_us == 0 {
                return None;
            }
            let pause = pause.insert(longer(*pause, told, now_us));
            if prolonged_us >= STORE_EVERY_US {
                return Some(pause.telling(told, now_us));
            }
            if let Some(Pause { known_by: KnownBy::Process { tell_from_us, .. }, .. }) = known {
                pause.known_by = KnownBy::Process { tell_from_us, is_being_told: false };
            } else {
                pause.stop_being_told();
            }
            None
        })
    }

    fn told_now(&self, changed: PauseMoment, now_us: u64, length_us: u64, source: PauseSource) -> Pause {
        let (ends_us, known_by) = (now_us.saturating_add(length_us), self.known_by_process(now_us));
        Pause { changed, since_us: now_us, ends_us, known_by, source, probe: None }
    }

    /// Returns what the store is to be told again, if that is due. It is due again only later.
    pub(crate) fn begin_telling(&self, id: TallyId<'_>, now_us: u64) -> Option<ToldPause> {
        self.begin_telling_if(id, now_us, |pause| pause.known(now_us).due == PauseDue::Tell)
    }

    /// Returns what the store is to be told now, if it may not know of the pause and is not being told.
    pub(crate) fn begin_telling_now(&self, id: TallyId<'_>, now_us: u64) -> Option<ToldPause> {
        self.begin_telling_if(id, now_us, |pause| pause.is_untold(now_us))
    }

    fn begin_telling_if(&self, id: TallyId<'_>, now_us: u64, is_due: impl Fn(&Pause) -> bool) -> Option<ToldPause> {
        self.change(id, now_us, |pause, changed| {
            let pause = pause.as_mut().filter(|pause| is_due(pause))?;
            (pause.changed, pause.known_by) = (changed, self.known_by_process(now_us));
            Some(pause.told(now_us))
        })
    }

    /// Keeps the policy of a pause until the store knows of that.
    pub(crate) fn keep_policy(&self, id: TallyId<'_>, policy: &Policy) {
        let hash = id.hash(&self.seed);
        if let Some(paused) = lock(&self.table).find(hash, id).filter(|paused| !paused.is_stored()) {
            paused.policy = Some(policy.clone());
        }
    }

    /// Returns all pauses of which the store may not know and is not being told.
    pub(crate) fn untold(&self, now_us: u64) -> Vec<Pausable> {
        let table = lock(&self.table);
        let untold = table.subjects.iter().filter(|paused| paused.pause.is_untold(now_us));
        untold.filter_map(|paused| Pausable::new(paused.policy.as_ref()?, Some(&paused.subject)).ok()).collect()
    }

    /// Notes that the store was not told of the pause. A later change is told by another message.
    pub(crate) fn hear_of_failure(&self, id: TallyId<'_>, told: PauseMoment, now_us: u64) {
        self.change(id, now_us, |pause, _| {
            if let Some(pause) = pause.as_mut().filter(|pause| pause.changed == told) {
                pause.stop_being_told();
            }
        });
    }

    /// A pause is told as soon as this process knows of it.
    fn known_by_process(&self, now_us: u64) -> KnownBy {
        let tell_from_us = now_us.saturating_add(self.trust_us.max(STORE_EVERY_US));
        KnownBy::Process { tell_from_us, is_being_told: true }
    }

    /// Notes for how long the store has said that the subject is paused; 0 if it is not. It was asked at this moment.
    pub(crate) fn hear(&self, id: TallyId<'_>, asked: PauseMoment, now_us: u64, left_us: u64) {
        if left_us == 0 && self.is_empty() {
            return;
        }
        let ends_us = now_us.saturating_add(left_us);
        let known_by = KnownBy::Store { ask_from_us: now_us.saturating_add(self.trust_us) };
        self.change(id, now_us, |pause, changed| {
            if pause.is_none_or(|known| known.yields_to(ends_us, asked)) {
                let before_us = pause.filter(|known| !known.is_over(now_us)).map_or(0, |known| known.length_us());
                let since_us = ends_us.saturating_sub(before_us.max(left_us));
                let source = pause.map(|known| known.source).unwrap_or_default();
                *pause = (left_us > 0).then_some(Pause { changed, since_us, ends_us, known_by, source, probe: None });
            }
        });
    }

    /// Notes that the store has said that the pause is over, and one call at a time is tried.
    pub(crate) fn hear_of_probe(&self, id: TallyId<'_>, asked: PauseMoment, now_us: u64) {
        if self.is_empty() {
            return;
        }
        self.change(id, now_us, |pause, changed| {
            if let Some(known) = pause.as_mut().filter(|known| !known.is_over(now_us) && known.yields_to(now_us, asked))
            {
                let since_us = now_us.saturating_sub(known.length_us());
                *known = Pause { changed, since_us, ends_us: now_us, ..*known };
            }
        });
    }

    /// Takes a step of a probe in this process. Returns what was known before the step: a free place was taken. Returns
    /// `None` if the subject is open for all now.
    pub(crate) fn probe(&self, id: TallyId<'_>, now_us: u64, name: LeaseName, step: ProbeStep) -> Option<KnownPause> {
        self.change(id, now_us, |pause, _| {
            let over = pause.as_mut()?;
            let known = over.known(now_us);
            let has_place = over.probe.is_some_and(|probe| probe.name == name);
            match (known.due, step) {
                (PauseDue::Probe, ProbeStep::Take) if known.left_us == 0 => {
                    over.probe = Some(Probe { name, until_us: now_us.saturating_add(PROBE_US) });
                }
                (PauseDue::Probe, ProbeStep::GiveBack | ProbeStep::Decline) if has_place => over.probe = None,
                (PauseDue::Probe, ProbeStep::Open) if has_place => {
                    *pause = None;
                    return None;
                }
                _ => {}
            }
            Some(known)
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
            if known.is_stored() {
                known.policy = None;
            }
            return;
        }
        if self.subjects.len() >= self.sweep_at {
            self.subjects.retain(|paused| !paused.pause.is_open(now_us));
            self.sweep_at = FEW.max(2 * self.subjects.len());
        }
        if self.subjects.len() < MOST_STORED || matches!(pause.known_by, KnownBy::Process { .. }) {
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

    fn is_stored(&self) -> bool {
        matches!(self.pause.known_by, KnownBy::Store { .. })
    }
}

#[cfg(test)]
mod tests;
