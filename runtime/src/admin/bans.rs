//! The subjects that are banned.

use std::time::Duration;

use futures_util::future::try_join_all;

use super::tallies::{Tallies, TallyPage};
use crate::decision::{DecidedBy, Decision, RejectionKind};
use crate::error::BackendError;
use crate::limiter::Limiter;
use crate::observe::opaque_debug;
use crate::policy::Policy;
use crate::subject::Subject;

/// How many subjects are peeked at together: the server needs a small part of a millisecond for them.
const TOGETHER: usize = 16;

/// The subjects that are banned, found step by step: see [`Limiter::bans`].
pub struct Bans<'a> {
    limiter: &'a Limiter,
    /// The policies that have a ban.
    policies: Vec<&'a Policy>,
    /// `None` if no policy has a ban.
    tallies: Option<Tallies<'a>>,
    /// The page of the last step, until each of its subjects was looked up.
    page: Option<TallyPage>,
}

/// The result of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct BanPage {
    bans: Vec<BannedSubject>,
    subjects: usize,
    progress: f64,
}

/// A subject that is banned: see [`Limiter::bans`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BannedSubject {
    policy: String,
    subject: Subject,
    retry_after: Option<Duration>,
}

impl Limiter {
    /// Finds the subjects that are banned now under these policies. Policies without a ban have none.
    ///
    /// One [scan](Self::tallies) finds the subjects of all these policies, and a peek at each shows whether its next call is
    /// denied by a ban. Nothing is changed. A ban does not show while an override with a count of 0 admits nobody.
    ///
    /// [`Check::unban`](crate::Check::unban) ends a ban.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use tallygate::{Limiter, Policy};
    ///
    /// # async fn unban(limiter: &Limiter, policy: &Policy) -> Result<(), tallygate::Error> {
    /// let mut bans = limiter.bans([policy]);
    /// while let Some(page) = bans.next_page().await? {
    ///     for banned in page.bans() {
    ///         limiter.check(policy, banned.subject()).unban().await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn bans<'a>(&'a self, policies: impl IntoIterator<Item = &'a Policy>) -> Bans<'a> {
        let banning = |policy: &'a Policy| {
            let group = policy.groups().iter().find(|group| group.ban.is_some())?;
            Some((policy, group.names().to_owned()))
        };
        let (policies, names): (Vec<_>, Vec<_>) = policies.into_iter().filter_map(banning).unzip();
        let tallies = (!names.is_empty()).then(|| Tallies::new(self, names.into_iter().enumerate().collect()));
        Bans { limiter: self, policies, tallies, page: None }
    }
}

impl Bans<'_> {
    /// Makes one step, after a pause since the last one. A step may find nothing. `None` is the end.
    ///
    /// # Errors
    ///
    /// A server does not answer within the deadline of the limiter. The next call repeats the step.
    pub async fn next_page(&mut self) -> Result<Option<BanPage>, BackendError> {
        if self.page.is_none() {
            let Some(tallies) = &mut self.tallies else { return Ok(None) };
            self.page = tallies.next_page().await?;
        }
        let Some(page) = &self.page else { return Ok(None) };
        let found: Vec<_> = page.found().collect();
        let mut bans = Vec::new();
        for some in found.chunks(TOGETHER) {
            let looked_at = try_join_all(some.iter().map(|(place, subject)| self.look(*place, subject))).await?;
            bans.extend(looked_at.into_iter().flatten());
        }
        let page = BanPage { bans, subjects: found.len(), progress: page.progress() };
        self.page = None;
        Ok(Some(page))
    }

    /// Returns the place where the next step goes on, for [`go_on_from`](Self::go_on_from). `None` at the end.
    #[cfg(feature = "web")]
    pub(crate) fn place(&self) -> Option<String> {
        self.tallies.as_ref()?.place()
    }

    /// Goes on at the place where another scan has stopped. Returns whether the text is such a place.
    #[cfg(feature = "web")]
    pub(crate) async fn go_on_from(&mut self, place: &str) -> Result<bool, BackendError> {
        match &mut self.tallies {
            Some(tallies) => tallies.go_on_from(place).await,
            None => Ok(false),
        }
    }

    /// Returns the ban of a subject, if it is banned.
    async fn look(&self, place: usize, subject: &Subject) -> Result<Option<BannedSubject>, BackendError> {
        let Some(policy) = self.policies.get(place) else { return Ok(None) };
        // Only the main subject is banned. The others are placeholders.
        let placeholder = Subject::everyone();
        let labels = policy.subject_labels().flatten();
        let check = self.limiter.check(policy, subject).peek().ignoring_pause();
        let decision = labels.fold(check, |check, label| check.subject(label, &placeholder)).await?;
        if decision.decided_by() != DecidedBy::Backend {
            return Err(BackendError::away("redis: it is away, so nobody knows who is banned"));
        }
        Ok(match decision {
            Decision::Denied(denial) if denial.kind() == RejectionKind::Banned => Some(BannedSubject {
                policy: policy.name().to_owned(),
                subject: subject.clone(),
                retry_after: denial.retry_after(),
            }),
            _ => None,
        })
    }
}

// Leaves out the subjects, which may be personal.
opaque_debug!(Bans<'_>, bans => { policies: bans.policies });

impl BanPage {
    /// Returns the banned subjects that were not returned before, in no order.
    #[must_use]
    pub fn bans(&self) -> &[BannedSubject] {
        &self.bans
    }

    /// Returns how many subjects this step has looked at, banned or not.
    #[must_use]
    pub fn subjects(&self) -> usize {
        self.subjects
    }

    /// Returns about how much of the scan is done, from 0 to 1.
    #[must_use]
    pub fn progress(&self) -> f64 {
        self.progress
    }
}

impl BannedSubject {
    /// Returns the name of the policy.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// Returns the subject. Its text is that of its key, which may be personal.
    #[must_use]
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Returns how long its calls are denied: as [`Denial::retry_after`](crate::Denial::retry_after), until the ban is over
    /// and no rule denies them. `None` if waiting does not help.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}
