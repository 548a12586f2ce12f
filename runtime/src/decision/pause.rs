//! What a permit needs to pause the subject of its call.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::call::TallyId;
use crate::error::BackendError;
use crate::policy::Policy;
use crate::subject::SubjectKey;

/// Resolves when the subject is paused everywhere.
pub(crate) type Pausing<'a> = Pin<Box<dyn Future<Output = Result<(), BackendError>> + Send + 'a>>;

/// Pauses subjects. It is all that a permit knows of the limiter for that.
pub(crate) trait Pauser: Send + Sync {
    /// Pauses a subject: here at once, and elsewhere once this is awaited.
    fn pause<'a>(&'a self, pausable: &'a Pausable, length: Duration) -> Pausing<'a>;

    /// Pauses for callers that cannot await.
    fn blocking_pause(self: Arc<Self>, pausable: &Pausable, length: Duration) -> Result<(), BackendError>;
}

/// The main subject of a call, whose policy may let it be paused.
#[derive(Clone)]
pub(crate) struct Pausable {
    pub(crate) policy: Policy,
    pub(crate) subject: SubjectKey,
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

/// The limiter and the subject of a permit whose policy can be paused.
pub(crate) struct PauseTicket {
    pauser: Arc<dyn Pauser>,
    pausable: Pausable,
}

impl PauseTicket {
    pub(crate) fn new(pauser: Arc<dyn Pauser>, pausable: Pausable) -> Self {
        Self { pauser, pausable }
    }

    pub(super) fn policy_name(&self) -> &str {
        self.pausable.policy.name()
    }

    pub(super) fn pause(&self, length: Duration) -> Pausing<'_> {
        self.pauser.pause(&self.pausable, length)
    }

    pub(super) fn blocking_pause(&self, length: Duration) -> Result<(), BackendError> {
        Arc::clone(&self.pauser).blocking_pause(&self.pausable, length)
    }
}
