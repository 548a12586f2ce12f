//! Pausing subjects: in this process at once, and for all others in Redis. After a pause, one call at a time is tried.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::core::Core;
use crate::call::{LeaseName, TallyId};
use crate::context;
use crate::decision::{Pausable, PauseSource, PauseStatus, PauseTicket, Pauser, Pausing, ProbeName, SaidPause};
use crate::error::BackendError;
use crate::micros;
use crate::observe::log;
use crate::policy::Policy;
use crate::store::{KnownPause, Outcome, PauseDue, PauseMoment, PauseToSend, ProbeStep};
use crate::system::under_way::TaskKind;

/// Tells a caller whether the store has its pause.
type SendResult = oneshot::Sender<Result<(), BackendError>>;

/// When a pause is sent to the store.
#[derive(Clone, Copy)]
enum Sending {
    /// In any case: it was said by hand.
    Always,
    /// If the store does not know of the pause yet: many answers say the same one.
    IfNew,
}

impl Core {
    /// Returns what this process knows of the pause of a subject; `None` if it is not paused.
    #[inline]
    pub(super) fn known_pause(&self, id: TallyId<'_>) -> Option<KnownPause> {
        self.pauses.find(id, || self.clock.now_us())
    }

    /// Returns what the permit of a call needs to pause its subject.
    #[inline]
    pub(super) fn pause_ticket(self: &Arc<Self>, policy: &Policy, id: TallyId<'_>) -> PauseTicket {
        let pausable = Pausable { policy: policy.clone(), subject: *id.subject };
        PauseTicket::new(Arc::clone(self) as _, pausable)
    }

    /// Notes what the store has said about a subject. It was asked at this moment.
    pub(super) fn hear_of_pause(&self, id: TallyId<'_>, asked: PauseMoment, outcome: Outcome) {
        if !self.stack.is_remote() {
            return;
        }
        let now_us = self.clock.now_us();
        let left_us = match outcome {
            Outcome::Paused { retry_after } => retry_after.ends_us(now_us) - now_us,
            // What is known is needed while Redis is away.
            Outcome::Probing { .. } => return self.pauses.hear_of_probe(id, asked, now_us),
            Outcome::Admitted | Outcome::Denied { .. } | Outcome::Banned { .. } => 0,
        };
        self.pauses.hear(id, asked, now_us, left_us);
    }

    /// Takes a step of a probe by what this process knows of the pause. Returns what the pause made of a call before this
    /// step, or `Admitted` if the subject is open for all now.
    pub(super) fn probe_here(&self, id: TallyId<'_>, name: LeaseName, step: ProbeStep) -> Outcome {
        self.pauses.probe(id, self.clock.now_us(), name, step).map_or(Outcome::Admitted, KnownPause::outcome)
    }

    /// Takes a step of a probe that has its place in the store, and wakes those who wait for it.
    async fn step_in_store(&self, pausable: &Pausable, name: LeaseName, step: ProbeStep) -> Result<(), BackendError> {
        let Some(layers) = self.stack.layers() else { return Ok(()) };
        let (id, asked) = (pausable.id()?, self.pauses.moment());
        let stepped = layers.server().probe(&pausable.policy, id, name, step, None).await;
        let outcome = stepped.inspect_err(|_| self.runtimes.background.note_failed_correction())?;
        // If the call gives its place back, the answer says how the pause was before. Only a pause is news then.
        if step == ProbeStep::Open || matches!(outcome, Outcome::Paused { .. }) {
            self.hear_of_pause(id, asked, outcome);
        }
        self.wake_after(&pausable.policy, id, step, outcome);
        Ok(())
    }

    /// Wakes those who wait for the end of a probe. It wakes nobody if the subject is paused again, or if the step has opened
    /// nothing because another call is tried.
    fn wake_after(&self, policy: &Policy, id: TallyId<'_>, step: ProbeStep, outcome: Outcome) {
        match (step, outcome) {
            (ProbeStep::GiveBack, Outcome::Admitted | Outcome::Probing { .. }) => self.sleepers.wake_one_for(id),
            (ProbeStep::Open, Outcome::Admitted) => {
                self.sleepers.wake_for(id);
                log::opened(policy.name());
            }
            _ => {}
        }
    }

    /// Ends a probe that has its place in this process. Returns the name of one that has its place in the store.
    fn end_here(&self, pausable: &Pausable, probe: ProbeName, step: ProbeStep) -> Option<LeaseName> {
        match (probe, pausable.id()) {
            (ProbeName::Here(name), Ok(id)) => {
                let outcome = self.probe_here(id, name, step);
                self.wake_after(&pausable.policy, id, step, outcome);
                None
            }
            (ProbeName::Here(_), Err(_)) => None,
            (ProbeName::Stored(name), _) => Some(name),
        }
    }

    /// Ends a probe: one that has its place in the store in the background.
    fn begin_end(self: &Arc<Self>, pausable: &Pausable, probe: ProbeName, step: ProbeStep) {
        let Some(name) = self.end_here(pausable, probe, step) else { return };
        let (core, pausable) = (Arc::clone(self), pausable.clone());
        self.runtimes.spawn_begun(TaskKind::Correction, async move {
            // If this fails, the place is free when its time is over.
            let _ = core.step_in_store(&pausable, name, step).await;
        });
    }

    /// Pauses a subject in this process. Returns what is to be sent to Redis now.
    fn pause_here(
        &self,
        pausable: &Pausable,
        said: SaidPause,
        sending: Sending,
    ) -> Result<Option<PauseToSend>, BackendError> {
        let id = pausable.id()?;
        let by_operator = || context::operator().map(|name| PauseSource::operator(&name));
        let source = said.field.map(PauseSource::field).or_else(by_operator).unwrap_or_default();
        let longest = pausable.policy.longest_pause().unwrap_or_default();
        if said.length > longest {
            log::pause_cut(pausable.policy.name(), said.length, longest);
        }
        // Rounded up, so that nothing is sent before the time.
        let length_us = micros::rounded_up(said.length.min(longest));
        if length_us == 0 {
            return Ok(None);
        }
        pausable.policy.observed().paused(said.field);
        let now_us = self.clock.now_us();
        let to_send = match sending {
            Sending::Always => Some(self.pauses.say(id, now_us, length_us, source)),
            Sending::IfNew => self.pauses.say_if_new(id, now_us, length_us, source),
        };
        if self.stack.is_remote() {
            self.pauses.keep_policy(id, &pausable.policy);
            return Ok(to_send);
        }
        Ok(None)
    }

    /// Pauses the subject of a call in this process. Returns what is to be sent to Redis now. Many calls may hear of one pause, so
    /// only the first one is reported, and sent.
    fn pause_by_call(&self, pausable: &Pausable, said: SaidPause) -> Result<Option<PauseToSend>, BackendError> {
        let known = self.known_pause(pausable.id()?);
        let to_send = self.pause_here(pausable, said, Sending::IfNew)?;
        if !said.length.is_zero() && known.is_none_or(|known| known.due == PauseDue::Probe) {
            let length = said.length.min(pausable.policy.longest_pause().unwrap_or_default());
            log::paused(pausable.policy.name(), length, said.field);
        }
        Ok(to_send)
    }

    /// Pauses a subject without a call: here at once, and elsewhere as soon as the store has it, also if this is dropped
    /// before.
    pub(super) fn pause_by_hand(self: &Arc<Self>, pausable: &Pausable, said: SaidPause) -> Pausing<'static> {
        self.send_and_wait(pausable, self.pause_here(pausable, said, Sending::Always))
    }

    fn send_and_wait(
        self: &Arc<Self>,
        pausable: &Pausable,
        paused: Result<Option<PauseToSend>, BackendError>,
    ) -> Pausing<'static> {
        let to_send = match paused {
            Ok(Some(to_send)) => to_send,
            paused => return Box::pin(ready(paused.map(drop))),
        };
        let (caller, result) = oneshot::channel();
        self.send_in_background(pausable.clone(), to_send, Some(caller));
        Box::pin(async { result.await.unwrap_or_else(|_| Err(BackendError::away("redis: the runtime was shut down"))) })
    }

    /// Sends a pause, in the background, that the store may not know of, if that is due.
    #[cold]
    pub(super) fn send_pause_again(self: &Arc<Self>, policy: &Policy, id: TallyId<'_>) {
        let Some(to_send) = self.pauses.begin_sending(id, self.clock.now_us()) else { return };
        self.send_in_background(Pausable { policy: policy.clone(), subject: *id.subject }, to_send, None);
    }

    /// Sends, in the background, every pause that the store may not know of and that is not on its way: this process may not be
    /// there for another call.
    pub(super) fn send_unsent_pauses(self: &Arc<Self>) {
        for pausable in self.pauses.unsent(self.clock.now_us()) {
            let to_send = pausable.id().ok().and_then(|id| self.pauses.begin_sending_now(id, self.clock.now_us()));
            if let Some(to_send) = to_send {
                self.send_in_background(pausable, to_send, None);
            }
        }
    }

    /// Sends a pause, even if nobody awaits that any more. If it fails, it is due again later.
    fn send_in_background(self: &Arc<Self>, pausable: Pausable, to_send: PauseToSend, caller: Option<SendResult>) {
        let name = pausable.policy.name().to_owned();
        let message = PauseMessage { core: Arc::clone(self), pausable, to_send, is_sent: false };
        self.runtimes.spawn_begun(TaskKind::Correction, async move {
            let result = message.send().await;
            let unheard = match caller {
                Some(caller) => caller.send(result).err(),
                None => Some(result),
            };
            if let Some(Err(error)) = unheard {
                log::not_paused(&name, &error);
            }
        });
    }

    /// Returns the pause of a subject: what the store says, or what was said to this process and the store may not know, whichever is
    /// longer.
    pub(super) async fn pause_status(&self, pausable: &Pausable) -> Result<Option<PauseStatus>, BackendError> {
        let id = pausable.id()?;
        let said = self.pauses.said(id, self.clock.now_us());
        let said = said.map(|(known, source)| status(known.outcome(), source));
        let Some(layers) = self.stack.layers() else { return Ok(said) };
        match layers.server().pause(&pausable.policy, id, 0, PauseSource::default()).await {
            Ok((Outcome::Admitted, _)) => Ok(said),
            Ok((paused, source)) => {
                let stored = status(paused, source);
                Ok(Some(said.filter(|said| said.left() > stored.left()).unwrap_or(stored)))
            }
            Err(error) => said.map_or(Err(error), |said| Ok(Some(said))),
        }
    }

    /// Ends the pause of a subject, if there is one.
    pub(super) async fn resume(&self, pausable: &Pausable) -> Result<(), BackendError> {
        let id = pausable.id()?;
        self.pauses.remove(id, self.clock.now_us());
        let resumed = match self.stack.layers() {
            Some(layers) => layers.server().resume(&pausable.policy, id).await,
            None => Ok(()),
        };
        // A question that was on its way may have brought the pause back.
        self.pauses.remove(id, self.clock.now_us());
        self.sleepers.wake_for(id);
        resumed
    }
}

/// A pause on its way to the store. If it is dropped before the store has answered, that has failed.
struct PauseMessage {
    core: Arc<Core>,
    pausable: Pausable,
    to_send: PauseToSend,
    is_sent: bool,
}

impl PauseMessage {
    async fn send(mut self) -> Result<(), BackendError> {
        let Self { core, pausable, to_send, .. } = &self;
        let id = pausable.id()?;
        if let Some(layers) = core.stack.layers() {
            let PauseToSend { length_us, source, changed } = *to_send;
            let (paused, _) = layers.server().pause(&pausable.policy, id, length_us, source).await?;
            core.hear_of_pause(id, changed, paused);
        }
        self.is_sent = true;
        Ok(())
    }
}

impl Drop for PauseMessage {
    fn drop(&mut self) {
        let Self { core, pausable, to_send, is_sent } = self;
        if let (Ok(id), false) = (pausable.id(), is_sent) {
            core.pauses.note_unsent(id, to_send.changed, core.clock.now_us());
            core.runtimes.background.note_failed_correction();
        }
    }
}

impl Pauser for Core {
    fn pause(self: Arc<Self>, pausable: &Pausable, said: SaidPause) -> Pausing<'static> {
        self.send_and_wait(pausable, self.pause_by_call(pausable, said))
    }

    fn begin_pause(self: Arc<Self>, pausable: &Pausable, said: SaidPause) -> Result<(), BackendError> {
        if let Some(to_send) = self.pause_by_call(pausable, said)? {
            self.send_in_background(pausable.clone(), to_send, None);
        }
        Ok(())
    }

    fn blocking_pause(self: Arc<Self>, pausable: &Pausable, said: SaidPause) -> Result<(), BackendError> {
        let Some(to_send) = self.pause_by_call(pausable, said)? else { return Ok(()) };
        let message = PauseMessage { core: Arc::clone(&self), pausable: pausable.clone(), to_send, is_sent: false };
        self.correct_on_thread(&pausable.policy, message.send())
    }

    fn open<'a>(&'a self, pausable: &'a Pausable, probe: ProbeName) -> Pausing<'a> {
        match self.end_here(pausable, probe, ProbeStep::Open) {
            Some(name) => Box::pin(self.step_in_store(pausable, name, ProbeStep::Open)),
            None => Box::pin(ready(Ok(()))),
        }
    }

    fn blocking_open(self: Arc<Self>, pausable: &Pausable, probe: ProbeName) -> Result<(), BackendError> {
        let Some(name) = self.end_here(pausable, probe, ProbeStep::Open) else { return Ok(()) };
        let (core, opened) = (Arc::clone(&self), pausable.clone());
        let opening = async move { core.step_in_store(&opened, name, ProbeStep::Open).await };
        self.correct_on_thread(&pausable.policy, opening)
    }

    fn begin_open(self: Arc<Self>, pausable: &Pausable, probe: ProbeName) {
        self.begin_end(pausable, probe, ProbeStep::Open);
    }

    fn give_back(self: Arc<Self>, pausable: &Pausable, probe: ProbeName, was_admitted: bool) {
        self.begin_end(pausable, probe, if was_admitted { ProbeStep::GiveBack } else { ProbeStep::Decline });
    }
}

/// Returns a pause that makes this of a call, as operators see it.
fn status(paused: Outcome, source: PauseSource) -> PauseStatus {
    let left = match paused {
        Outcome::Paused { retry_after } => retry_after.retry_after().unwrap_or_default(),
        // The pause is over. A probe has its place, and the time of that is no pause.
        _ => Duration::ZERO,
    };
    PauseStatus::new(left, source)
}
