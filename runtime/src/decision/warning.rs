//! The warning that an application gets when a subject comes near a limit.

use super::report::RuleStatus;
use crate::observe::opaque_debug;
use crate::policy::Policy;
use crate::subject::SubjectKey;

/// A subject has come near the limit of a rule: see [`LimiterBuilder::on_warning`](crate::LimiterBuilder::on_warning).
#[derive(Clone, Copy)]
pub struct Warning<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) subject: &'a SubjectKey,
    pub(crate) status: &'a RuleStatus,
}

impl<'a> Warning<'a> {
    /// Returns the policy, with the rules that are in force.
    #[must_use]
    pub fn policy(&self) -> &'a Policy {
        self.policy
    }

    /// Returns the subject that the rule counts, as it stands in keys: values are escaped, and those with the filter `hash`
    /// are digests. It may be personal, so it does not belong into a log.
    #[must_use]
    pub fn subject(&self) -> &'a str {
        self.subject
    }

    /// Returns where the rule stands after the call.
    #[must_use]
    pub fn status(&self) -> &'a RuleStatus {
        self.status
    }
}

// Leaves out the subject, which may be personal.
opaque_debug!(Warning<'_>, warning => { policy: warning.policy.name(), status: warning.status });
