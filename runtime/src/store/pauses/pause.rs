//! The pause of one subject, as this process knows it.
//!
//! A call or an operator *says* a pause to this process, which *sends* it to the store, and *hears* of it in the store's answers.

use crate::call::LeaseName;
use crate::clock::is_set_back;
use crate::decision::PauseSource;
use crate::store::answer::Outcome;
use crate::wait::Wait;

/// For how long a probe has its place at most, in microseconds. A call that takes longer is tried beside the next one.
pub(crate) const PROBE_US: u64 = 60_000_000;

/// A moment between two changes of the pauses. An answer of the store says nothing about changes after its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PauseMoment(pub(super) u64);

#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    pub(super) changed: PauseMoment,
    since_us: u64,
    pub(super) ends_us: u64,
    known_by: KnownBy,
    pub(super) source: PauseSource,
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
    /// This process, and perhaps not the store: the pause is sent again from then on. While it `is_being_sent`, a message about
    /// the whole pause is on its way.
    Process { send_from_us: u64, is_being_sent: bool },
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
            PauseDue::Nothing | PauseDue::Ask | PauseDue::Send => Outcome::Paused { retry_after },
        }
    }
}

/// What this process has to do about a pause that it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PauseDue {
    Nothing,
    /// The store is to be asked, because another process may have ended the pause.
    Ask,
    /// The pause is to be sent, because the store may not know of it.
    Send,
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

/// A pause that is to be sent to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PauseToSend {
    pub(crate) length_us: u64,
    pub(crate) source: PauseSource,
    /// When the pause changed last. The answer of the store is heard with it.
    pub(crate) changed: PauseMoment,
}

impl Pause {
    /// A pause that is said now, and sent at once; again from this time on.
    pub(super) fn said(
        changed: PauseMoment,
        now_us: u64,
        length_us: u64,
        source: PauseSource,
        send_from_us: u64,
    ) -> Self {
        let known_by = KnownBy::Process { send_from_us, is_being_sent: true };
        Self { changed, since_us: now_us, ends_us: now_us.saturating_add(length_us), known_by, source, probe: None }
    }

    /// A pause that the store has just answered with, after what was known before. The store is asked again from this time on.
    pub(super) fn heard(
        known: Option<Self>,
        changed: PauseMoment,
        now_us: u64,
        left_us: u64,
        ask_from_us: u64,
    ) -> Self {
        let ends_us = now_us.saturating_add(left_us);
        let before_us = known.filter(|known| !known.is_over(now_us)).map_or(0, |known| known.length_us());
        let since_us = ends_us.saturating_sub(before_us.max(left_us));
        let source = known.map(|known| known.source).unwrap_or_default();
        Self { changed, since_us, ends_us, known_by: KnownBy::Store { ask_from_us }, source, probe: None }
    }

    /// Whether the subject is open for all again.
    pub(super) fn is_open(&self, now_us: u64) -> bool {
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

    /// Whether the store has said it, or confirmed what was sent.
    pub(super) fn is_stored(&self) -> bool {
        matches!(self.known_by, KnownBy::Store { .. })
    }

    /// Whether it holds, the store may not know of it, and no message about it is on its way.
    pub(super) fn is_unsent(&self, now_us: u64) -> bool {
        matches!(self.known_by, KnownBy::Process { is_being_sent: false, .. }) && !self.is_over(now_us)
    }

    /// Begins to send it; again from this time on.
    pub(super) fn begin_sending(&mut self, changed: PauseMoment, send_from_us: u64) {
        self.changed = changed;
        self.known_by = KnownBy::Process { send_from_us, is_being_sent: true };
    }

    pub(super) fn stop_sending(&mut self) {
        if let KnownBy::Process { is_being_sent, .. } = &mut self.known_by {
            *is_being_sent = false;
        }
    }

    /// Leaves the rest of it to the next message that was due before.
    pub(super) fn send_with(&mut self, before: Option<Self>) {
        if let Some(Self { known_by: KnownBy::Process { send_from_us, .. }, .. }) = before {
            self.known_by = KnownBy::Process { send_from_us, is_being_sent: false };
        } else {
            self.stop_sending();
        }
    }

    pub(super) fn known(&self, now_us: u64) -> KnownPause {
        if self.is_over(now_us) {
            let until_us = self.probe.map_or(0, |probe| probe.until_us.min(self.opens_us()));
            return KnownPause { left_us: until_us.saturating_sub(now_us), due: PauseDue::Probe };
        }
        let due = match self.known_by {
            KnownBy::Store { ask_from_us } if now_us >= ask_from_us => PauseDue::Ask,
            KnownBy::Process { send_from_us, .. } if now_us >= send_from_us => PauseDue::Send,
            _ => PauseDue::Nothing,
        };
        KnownPause { left_us: self.ends_us.saturating_sub(now_us), due }
    }

    pub(super) fn to_send(self, now_us: u64) -> PauseToSend {
        let Self { source, changed, .. } = self;
        PauseToSend { length_us: self.ends_us.saturating_sub(now_us), source, changed }
    }

    /// Returns what is to be sent after another pause was said, which may have prolonged this one.
    pub(super) fn to_send_after(self, said: Self, now_us: u64) -> PauseToSend {
        match self.known_by {
            KnownBy::Process { .. } => self.to_send(now_us),
            // The store knows a longer one, unless another process has ended that.
            KnownBy::Store { .. } => said.to_send(now_us),
        }
    }

    /// Returns the longer one of a pause that may be known and one that is said.
    pub(super) fn longer(known: Option<Self>, said: Self, now_us: u64) -> Self {
        known.filter(|known| !known.is_over(now_us)).map_or(said, |known| known.or_said(said))
    }

    /// Returns the longer one of this pause and another that is said. The time after it in which one call at a time is tried gets
    /// no shorter.
    fn or_said(self, said: Self) -> Self {
        if self.ends_us < said.ends_us {
            return Self { since_us: said.since_us.min(said.ends_us.saturating_sub(self.length_us())), ..said };
        }
        let known_by = match self.known_by {
            // This process keeps to what was said to it, and does not ask the store about that.
            KnownBy::Store { ask_from_us } => KnownBy::Store { ask_from_us: ask_from_us.max(said.ends_us) },
            KnownBy::Process { .. } => said.known_by,
        };
        Self { changed: said.changed, known_by, ..self }
    }

    /// Whether an answer of the store replaces this pause: one that lasts as long, or one to a question about it. Until the
    /// store has confirmed what was said to this process, nothing shortens that.
    pub(super) fn yields_to(&self, answered_ends_us: u64, asked: PauseMoment) -> bool {
        answered_ends_us >= self.ends_us || self.is_stored() && self.changed <= asked
    }

    /// Ends it now, because the store has said that it is over, unless it outlasts this answer.
    pub(super) fn end(&mut self, changed: PauseMoment, asked: PauseMoment, now_us: u64) {
        if !self.is_over(now_us) && self.yields_to(now_us, asked) {
            let since_us = now_us.saturating_sub(self.length_us());
            *self = Self { changed, since_us, ends_us: now_us, ..*self };
        }
    }

    /// Takes a step of a probe after the pause. Returns this pause after it, or `None` if the subject is open for all now.
    pub(super) fn probed(mut self, now_us: u64, name: LeaseName, step: ProbeStep) -> Option<Self> {
        if !self.is_over(now_us) {
            return Some(self);
        }
        let has_place = self.probe.is_some_and(|probe| probe.name == name);
        match step {
            ProbeStep::Take if self.known(now_us).left_us == 0 => {
                self.probe = Some(Probe { name, until_us: now_us.saturating_add(PROBE_US) });
            }
            ProbeStep::GiveBack | ProbeStep::Decline if has_place => self.probe = None,
            ProbeStep::Open if has_place => return None,
            _ => {}
        }
        Some(self)
    }
}
