//! Pauses: who says one, what operators see of it, and what a permit needs to pause the subject of its call and to open it.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrayvec::ArrayString;

use crate::bounds::is_unseen;
use crate::call::{LeaseName, TallyId};
use crate::error::BackendError;
use crate::policy::Policy;
use crate::subject::SubjectKey;
use crate::system::under_way::CountedTask;

/// The most bytes of a source, in a store and on the way there.
pub(crate) const SOURCE_BYTES: usize = 64;

/// How the text of a source begins.
const OPERATOR: &str = "operator ";
const FIELD: &str = "field ";

/// A pause that somebody says: for how long, and by which field of an answer if it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SaidPause {
    pub(crate) length: Duration,
    pub(crate) field: Option<&'static str>,
}

impl From<Duration> for SaidPause {
    fn from(length: Duration) -> Self {
        Self { length, field: None }
    }
}

/// Who has said a pause: an operator, or a field of an answer. Empty if that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PauseSource(ArrayString<SOURCE_BYTES>);

impl PauseSource {
    pub(crate) fn operator(name: &str) -> Self {
        Self::new(OPERATOR, name)
    }

    pub(crate) fn field(name: &str) -> Self {
        Self::new(FIELD, name)
    }

    /// A name that is too long is cut. What is not visible is left out, because another program may have written it.
    fn new(beginning: &str, name: &str) -> Self {
        let mut text = ArrayString::new();
        for character in beginning.chars().chain(name.chars().filter(|character| !is_unseen(*character))) {
            if text.try_push(character).is_err() {
                break;
            }
        }
        Self(text)
    }

    /// Reads what is stored. What no process writes says nothing.
    #[cfg(feature = "redis")]
    pub(crate) fn read(stored: &[u8]) -> Self {
        let text = String::from_utf8_lossy(stored);
        let named = |beginning: &'static str| text.strip_prefix(beginning).map(|name| Self::new(beginning, name));
        named(OPERATOR).or_else(|| named(FIELD)).unwrap_or_default()
    }

    #[cfg(feature = "redis")]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A pause of a subject: see [`Check::pause_status`](crate::Check::pause_status).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseStatus {
    left: Duration,
    source: PauseSource,
}

impl PauseStatus {
    pub(crate) fn new(left: Duration, source: PauseSource) -> Self {
        Self { left, source }
    }

    /// Returns how long the pause still lasts: zero once it is over, while one call at a time is tried.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.left
    }

    /// Returns the operator who has said it, if the [context](crate::context) named one. A long name is cut at 55 bytes.
    #[must_use]
    pub fn operator(&self) -> Option<&str> {
        self.source.0.strip_prefix(OPERATOR)
    }

    /// Returns the field of the answer that has said it, like `retry-after`, if `client::pace` heard it.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.source.0.strip_prefix(FIELD)
    }
}

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

#[cfg(all(test, feature = "redis"))]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_is_stored_is_read_as_it_was_and_anything_else_says_nothing() {
        for source in [PauseSource::operator("zoe b."), PauseSource::field("retry-after"), PauseSource::default()] {
            assert_eq!(PauseSource::read(source.as_str().as_bytes()), source);
        }
        for other in [&b"zoe"[..], b"\xff\xfe", b"operator", b"\0\0"] {
            assert_eq!(PauseSource::read(other), PauseSource::default());
        }
    }

    #[test]
    fn a_long_name_is_cut_between_characters_and_controls_no_terminal() {
        assert_eq!(PauseSource::operator(&"日".repeat(100)).as_str(), format!("operator {}", "日".repeat(18)));
        assert_eq!(PauseSource::read(b"operator z\x1b[2Joe\n").as_str(), "operator z[2Joe");
    }
}
