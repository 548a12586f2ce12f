//! What a permit needs to pause the subject of its call, and to open it after a pause.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::pause_source::SaidPause;
use crate::call::{LeaseName, TallyId};
use crate::error::BackendError;
use crate::policy::Policy;
use crate::subject::SubjectKey;
use crate::system::under_way::CountedTask;

/// Resolves when the subject is paused or open everywhere.
pub(crate) type Pausing<'a> = Pin<Box<dyn Future<Output = Result<(), BackendError>> + Send + 'a>>;

/// Pauses and opens subjects. A permit reaches its limiter by this. A pause is not sent to the store now if the one that
/// it is known to have ends as late, or only a moment earlier.
pub(crate) trait Pauser: Send + Sync {
    /// Pauses a subject: here at once, and elsewhere as soon as the store has it, also if this is dropped before.
    fn pause(self: Arc<Self>, pausable: &Pausable, said: SaidPause) -> Pausing<'static>;

    /// Pauses a subject here at once, and elsewhere in the background.
    fn begin_pause(self: Arc<Self>, pausable: &Pausable, said: SaidPause) -> Result<(), BackendError>;

    /// Pauses for callers that cannot await.
    fn blocking_pause(self: Arc<Self>, pausable: &Pausable, said: SaidPause) -> Result<(), BackendError>;

    /// Opens a subject for all, if the probe still has its place.
    fn open<'a>(&'a self, pausable: &'a Pausable, probe: ProbeName) -> Pausing<'a>;

    /// Opens for callers that cannot await.
    fn blocking_open(self: Arc<Self>, pausable: &Pausable, probe: ProbeName) -> Result<(), BackendError>;

    /// Opens a subject for all here at once, and elsewhere in the background, if the probe still has its place.
    fn begin_open(self: Arc<Self>, pausable: &Pausable, probe: ProbeName);

    /// Gives the place of a probe back, in the background. If the call was admitted, another one that waits is tried.
    fn give_back(self: Arc<Self>, pausable: &Pausable, probe: ProbeName, was_admitted: bool);
}

/// The subject of a call that its policy may let be paused.
#[derive(Clone)]
pub(crate) struct Pausable {
    pub(crate) policy: Policy,
    pub(crate) subject: SubjectKey,
}

/// The name of the one call that is tried after a pause, and where it has its place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProbeName {
    Here(LeaseName),
    Stored(LeaseName),
}

impl Pausable {
    /// # Errors
    ///
    /// The policy cannot be paused.
    pub(crate) fn new(policy: &Policy, subject: Option<&SubjectKey>) -> Result<Self, BackendError> {
        let subject = subject.filter(|_| policy.longest_pause().is_some());
        let subject = *subject.ok_or_else(|| not_pausable(policy.name()))?;
        Ok(Self { policy: policy.clone(), subject })
    }

    /// Returns where the pause is kept.
    ///
    /// # Errors
    ///
    /// The policy cannot be paused.
    pub(crate) fn id(&self) -> Result<TallyId<'_>, BackendError> {
        TallyId::of_pause(&self.policy, &self.subject).ok_or_else(|| not_pausable(self.policy.name()))
    }
}

#[cold]
fn not_pausable(policy: &str) -> BackendError {
    BackendError::misuse(format!(
        "subjects of policy `{policy}` cannot be paused; make it pausable with `PolicyBuilder::pausable`"
    ))
}

/// The limiter and the subject of a permit whose policy can be paused. Dropping it gives the place of a probe back.
pub(crate) struct PauseTicket {
    pauser: Arc<dyn Pauser>,
    pausable: Pausable,
    /// If the call is tried after a pause. A place in the store is counted, so that `drain` waits for it.
    probe: Option<(ProbeName, Option<CountedTask>)>,
    /// Whether the probe has no place to give back.
    has_ended: AtomicBool,
}

impl PauseTicket {
    pub(crate) fn new(pauser: Arc<dyn Pauser>, pausable: Pausable) -> Self {
        Self { pauser, pausable, probe: None, has_ended: AtomicBool::new(false) }
    }

    /// Gives the call the place of the probe, which it has taken.
    pub(crate) fn of_probe(mut self, name: ProbeName, counted: Option<CountedTask>) -> Self {
        self.probe = Some((name, counted));
        self
    }

    pub(super) fn policy_name(&self) -> &str {
        self.pausable.policy.name()
    }

    pub(super) fn pause(&self, said: SaidPause) -> Pausing<'static> {
        self.end_by_pause(said);
        Arc::clone(&self.pauser).pause(&self.pausable, said)
    }

    pub(super) fn begin_pause(&self, said: SaidPause) -> Result<(), BackendError> {
        self.end_by_pause(said);
        Arc::clone(&self.pauser).begin_pause(&self.pausable, said)
    }

    pub(super) fn blocking_pause(&self, said: SaidPause) -> Result<(), BackendError> {
        self.end_by_pause(said);
        Arc::clone(&self.pauser).blocking_pause(&self.pausable, said)
    }

    pub(super) fn succeeded(&self) -> Pausing<'_> {
        match self.running_probe() {
            Some(probe) => self.ending(self.pauser.open(&self.pausable, probe)),
            None => Box::pin(ready(Ok(()))),
        }
    }

    pub(super) fn begin_success(&self) {
        if let Some(probe) = self.running_probe() {
            self.note_end(true);
            Arc::clone(&self.pauser).begin_open(&self.pausable, probe);
        }
    }

    pub(super) fn blocking_succeeded(&self) -> Result<(), BackendError> {
        let Some(probe) = self.running_probe() else { return Ok(()) };
        let opened = Arc::clone(&self.pauser).blocking_open(&self.pausable, probe);
        self.note_end(opened.is_ok());
        opened
    }

    /// Gives the place of a call back that its rules deny. They would also deny those who wait: perhaps this caller, again and
    /// again.
    pub(crate) fn deny(&self) {
        if let Some(probe) = self.running_probe() {
            self.lose();
            Arc::clone(&self.pauser).give_back(&self.pausable, probe, false);
        }
    }

    /// Notes that the call has not got the place.
    pub(crate) fn lose(&self) {
        self.note_end(true);
    }

    /// Whether the call is tried after a pause, and neither a pause nor a success has ended that.
    pub(super) fn is_probe(&self) -> bool {
        self.running_probe().is_some()
    }

    fn running_probe(&self) -> Option<ProbeName> {
        self.probe.as_ref().map(|(name, _)| *name).filter(|_| !self.has_ended.load(Ordering::Acquire))
    }

    /// Notes that the call has met a pause. Even if the pause cannot be sent to the store, another call is not to be tried at once: the
    /// place is free when its time is over.
    fn end_by_pause(&self, said: SaidPause) {
        self.note_end(!said.length.is_zero());
    }

    fn ending<'a>(&'a self, pausing: Pausing<'a>) -> Pausing<'a> {
        Box::pin(async move {
            let ended = pausing.await;
            self.note_end(ended.is_ok());
            ended
        })
    }

    fn note_end(&self, has_ended: bool) {
        self.has_ended.fetch_or(has_ended, Ordering::AcqRel);
    }
}

impl Drop for PauseTicket {
    fn drop(&mut self) {
        if let Some(probe) = self.running_probe() {
            Arc::clone(&self.pauser).give_back(&self.pausable, probe, true);
        }
    }
}
