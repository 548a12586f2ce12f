//! Telling that a subject has come near a limit.

use std::sync::Arc;

use crate::decision::{Report, RuleStatus, Warning};
use crate::observe::log;
use crate::store::Request;
use crate::subject::SubjectKey;

/// What an application does when a subject comes near a limit.
pub(super) type OnWarning = Arc<dyn Fn(&Warning<'_>) + Send + Sync>;

/// Tells the application, the log and the metrics that a subject has come near a limit.
pub(super) struct Warnings {
    on_warning: Option<OnWarning>,
}

impl Warnings {
    pub(super) fn new(on_warning: Option<OnWarning>) -> Self {
        Self { on_warning }
    }

    /// Tells of each rule near whose limit an admitted call has brought its subject.
    #[inline]
    pub(super) fn tell(&self, request: Request<'_>, report: &Report) {
        if let Some(share) = request.policy.warn_at()
            && !request.options.peek
        {
            let cost = request.options.cost;
            let near = report.rules().iter().filter(|status| status.has_come_near(share, cost));
            near.for_each(|status| self.tell_of(request, status));
        }
    }

    #[cold]
    fn tell_of(&self, request: Request<'_>, status: &RuleStatus) {
        log::warned(request.policy.name(), status.position());
        if let (Some(on_warning), Some(subject)) = (&self.on_warning, subject_of(request, status)) {
            on_warning(&Warning::new(request.policy, subject, status));
        }
    }
}

/// The subject that the rule counts.
fn subject_of<'a>(request: Request<'a>, status: &RuleStatus) -> Option<&'a SubjectKey> {
    request.subjects.get(request.policy.group_of(status.position())?)
}
