//! The list of denied subjects.

use std::cmp::Reverse;

use super::sketch::SketchedSubject;
use crate::error::Error;
use crate::limiter::Limiter;
use crate::subject::Subject;

/// A subject whose calls were denied: see [`Limiter::denied_subjects`] and [`Limiter::top_denied`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedSubject {
    pub(super) policy: String,
    pub(super) label: Option<String>,
    pub(super) subject: Subject,
    pub(super) denials: u64,
    pub(super) max_denials: Option<u64>,
}

impl Limiter {
    /// Returns the subjects that were denied most often in this process since the limiter was built, those with the
    /// most denials first.
    ///
    /// It is empty unless [`LimiterBuilder::denied_subjects`](crate::LimiterBuilder::denied_subjects) sets how many to
    /// keep of each policy. If rules of several subjects deny a call, the denial counts for the subject of the reported
    /// rule; a denial by a ban counts for the main subject. Peeks and calls in shadow do not count.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let limiter = Limiter::builder().denied_subjects(100).build_in_memory()?;
    /// let policy = Policy::builder("export").rule(Rule::sliding_window(1, Duration::from_secs(60))).build()?;
    /// for user in ["alice", "bob", "alice", "alice"] {
    ///     let _ = limiter.check(&policy, &Subject::of(user)).await?;
    /// }
    /// let denied = limiter.denied_subjects();
    /// assert_eq!((denied[0].policy(), denied[0].subject().to_string().as_str()), ("export", "alice"));
    /// assert_eq!((denied[0].denials(), denied.len()), (2, 1));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn denied_subjects(&self) -> Vec<DeniedSubject> {
        let mut listed = Vec::new();
        if let Some(denied) = &self.core.denied_subjects {
            denied.for_each(|policy, sketch| {
                listed.extend(sketch.iter().filter_map(|kept| DeniedSubject::of(policy, kept)));
            });
        }
        sort(&mut listed);
        listed
    }

    /// Returns up to `most` subjects of a policy that were denied most often, those with the most denials first: in Redis,
    /// by all processes within the last hour or two; in memory, as by [`denied_subjects`](Self::denied_subjects).
    ///
    /// It counts only processes whose limiter [keeps denied subjects](crate::LimiterBuilder::denied_subjects). They
    /// publish about every ten seconds. This limiter need not keep any.
    ///
    /// # Errors
    ///
    /// Redis does not answer.
    pub async fn top_denied(&self, policy: &str, most: usize) -> Result<Vec<DeniedSubject>, Error> {
        let mut listed: Vec<_> = match self.core.stack.store().denials() {
            None => self.denied_subjects().into_iter().filter(|denied| denied.policy == policy).collect(),
            Some(stored) => self.core.published_denied(&stored, policy).await?,
        };
        sort(&mut listed);
        listed.truncate(most);
        Ok(listed)
    }

    /// Publishes now what this process has counted of [denied subjects](crate::LimiterBuilder::denied_subjects),
    /// instead of about ten seconds after a denial: for the end of a program. In memory, it does nothing. If it is
    /// dropped before it ends, the next publication sends the rest, except for up to 250 subjects that were about to be
    /// sent.
    ///
    /// # Errors
    ///
    /// Redis does not answer. Counts that Redis has certainly not received are published later. Counts that it may have
    /// received are not, so that nothing counts twice.
    pub async fn publish_denied_subjects(&self) -> Result<(), Error> {
        Ok(self.core.publish_denied().await?)
    }
}

impl DeniedSubject {
    fn of(policy: &str, kept: &SketchedSubject) -> Option<Self> {
        let id = kept.id();
        Some(Self {
            policy: policy.to_owned(),
            label: id.label.map(str::to_owned),
            subject: Subject::from_escaped(id.subject)?,
            denials: kept.denials,
            max_denials: Some(kept.at_most()),
        })
    }

    /// Returns the name of the policy.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// Returns the label of the subject whose rule denied the calls, or `None` if it is the main one.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// Returns the subject. Its text is that of its key, which may be personal data.
    #[must_use]
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Returns how many denials were counted. The subject had at least this many.
    #[must_use]
    pub fn denials(&self) -> u64 {
        self.denials
    }

    /// Returns how many denials the subject had at most, with those before it was kept. `None` if this is unknown:
    /// processes publish only what they have counted.
    #[must_use]
    pub fn max_denials(&self) -> Option<u64> {
        self.max_denials
    }
}

/// Sorts by denials, most first, and then by name.
fn sort(listed: &mut [DeniedSubject]) {
    listed.sort_by_cached_key(|denied| {
        (Reverse(denied.denials), denied.policy.clone(), denied.label.clone(), denied.subject.to_string())
    });
}
