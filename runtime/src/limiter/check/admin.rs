//! Administration of a call's subjects: removing their tallies, and banning by hand.

use std::time::Duration;

use super::{Check, Subjects};
use crate::error::BackendError;

impl Check<'_> {
    /// Removes all that the main subject of this call has done under this policy, its ban included.
    ///
    /// Other subjects of the call stay as they are: a network is shared with others. [`reset_all`](Self::reset_all) removes
    /// theirs too. The call need not name them.
    ///
    /// # Errors
    ///
    /// The policy has no rule on the main subject, or the backend did not answer within the deadline.
    pub async fn reset(self) -> Result<(), BackendError> {
        if self.subjects.main(&self.policy)?.is_empty() {
            let name = self.policy.name();
            return Err(BackendError::new(format!(
                "policy `{name}` has no rule on the main subject; `reset_all` resets the others"
            )));
        }
        self.reset_subjects(Subjects::Main).await
    }

    /// Removes all that every subject of this call has done under this policy, also those that other callers share.
    ///
    /// # Errors
    ///
    /// The call left a subject of the policy out, or the backend did not answer within the deadline.
    pub async fn reset_all(self) -> Result<(), BackendError> {
        self.reset_subjects(Subjects::All).await
    }

    async fn reset_subjects(&self, subjects: Subjects) -> Result<(), BackendError> {
        for effective in self.effective_and_own(subjects)? {
            let request = effective.request(self.options);
            let reset = self.limiter.core.store.reset(request).await;
            self.limiter.core.invalidate_denials(request);
            reset?;
        }
        Ok(())
    }

    /// Bans the call's main subject for that long, as if its denials had led to it: for 3,660 days at most. A ban of zero
    /// ends the one that there is.
    ///
    /// # Errors
    ///
    /// The policy has no ban, or the backend did not answer within the deadline.
    pub async fn ban(self, duration: Duration) -> Result<(), BackendError> {
        for effective in self.effective_and_own(Subjects::Main)? {
            self.limiter.core.store.ban(effective.request(self.options), duration).await?;
        }
        Ok(())
    }

    /// Ends the ban of the call's main subject, if there is one. Its denials are counted anew.
    ///
    /// # Errors
    ///
    /// The policy has no ban, or the backend did not answer within the deadline.
    pub async fn unban(self) -> Result<(), BackendError> {
        self.ban(Duration::ZERO).await
    }
}
