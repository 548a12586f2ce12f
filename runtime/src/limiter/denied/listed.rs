//! The list of denied subjects: those of this process and, in Redis, what all processes have counted, by hour.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::DeniedSubjects;
use super::sketch::{SketchedSubject, SubjectId};
use crate::error::{BackendError, Error};
use crate::limiter::Limiter;
use crate::limiter::core::Core;
use crate::observe::log;
use crate::store::StoredDenials;
use crate::subject::{Subject, escape_name, percent_decode, percent_encode};
use crate::system::sleep;
use crate::system::under_way::TaskKind;

/// How long after a denial it is published, together with the denials in between.
const DELAY: Duration = Duration::from_secs(10);

/// The time for which denials are published together: an hour.
const PERIOD_US: u64 = 3_600_000_000;

/// A subject whose calls were denied: see [`Limiter::denied_subjects`] and [`Limiter::top_denied`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedSubject {
    policy: String,
    label: Option<String>,
    subject: Subject,
    denials: u64,
    max_denials: Option<u64>,
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

impl DeniedSubjects {
    /// The policies that have unpublished denials.
    fn unpublished_policies(&self) -> Vec<String> {
        let mut policies = Vec::new();
        self.for_each(|policy, sketch| {
            if sketch.iter().any(|kept| kept.unpublished > 0) {
                policies.push(policy.to_owned());
            }
        });
        policies
    }

    fn take_unpublished<'a>(&'a self, policy: &'a str) -> Unpublished<'a> {
        let mut counts = Vec::new();
        self.with_sketch(policy, |sketch| {
            let unpublished = sketch.iter_mut().filter(|kept| kept.unpublished > 0);
            counts.extend(unpublished.map(|kept| (member(kept.id()), mem::take(&mut kept.unpublished))));
        });
        Unpublished { denied: self, policy, counts }
    }

    /// Puts back unpublished counts of subjects that are still kept.
    fn put_back(&self, policy: &str, unpublished: &[(String, u64)]) {
        let unpublished: HashMap<_, _> =
            unpublished.iter().map(|(member, denials)| (member.as_str(), *denials)).collect();
        self.with_sketch(policy, |sketch| {
            sketch.iter_mut().for_each(|kept: &mut SketchedSubject| {
                let denials = unpublished.get(member(kept.id()).as_str()).copied().unwrap_or_default();
                kept.unpublished = kept.unpublished.saturating_add(denials);
            });
        });
    }
}

/// Counts of a policy that are about to be published: how often each subject was denied. When it is dropped, it puts
/// back what is left, because the caller may drop the publication.
struct Unpublished<'a> {
    denied: &'a DeniedSubjects,
    policy: &'a str,
    counts: Vec<(String, u64)>,
}

impl Drop for Unpublished<'_> {
    fn drop(&mut self) {
        if !self.counts.is_empty() {
            self.denied.put_back(self.policy, &self.counts);
        }
    }
}

impl Core {
    pub(in crate::limiter) fn publish_denied_soon(self: &Arc<Self>) {
        let (Some(denied), Some(_)) = (&self.denied_subjects, self.stack.store().denials()) else { return };
        let Some(task) = denied.publication.begin() else { return };
        // A limiter that is drained publishes what was counted before.
        if self.runtimes.background.is_draining() {
            return;
        }
        let (core, background) = (Arc::downgrade(self), Arc::clone(&self.runtimes.background));
        self.runtimes.spawn(TaskKind::Other, async move {
            background.pause(sleep(DELAY)).await;
            // From now on, a denial begins another publication.
            drop(task);
            let Some(core) = core.upgrade() else { return };
            if let Err(error) = core.publish_denied().await {
                log::denied_not_published(&error);
            }
        });
    }

    /// Publishes what was counted, if the store is shared by processes.
    async fn publish_denied(&self) -> Result<(), BackendError> {
        let (Some(denied), Some(stored)) = (&self.denied_subjects, self.stack.store().denials()) else { return Ok(()) };
        let period = self.stack.store().now_us() / PERIOD_US;
        let mut outcome = Ok(());
        for policy in denied.unpublished_policies() {
            let mut unpublished = denied.take_unpublished(&policy);
            let added = stored.add(&escape_name(&policy), period, &mut unpublished.counts).await;
            outcome = outcome.and(added);
        }
        outcome
    }

    /// Returns what all processes have published of a policy in this hour and the one before, in no order.
    async fn published_denied(
        &self,
        stored: &StoredDenials<'_>,
        policy: &str,
    ) -> Result<Vec<DeniedSubject>, BackendError> {
        // The server's clock says which hour it is, so it is read first.
        self.stack.store().refresh_time().await?;
        let period = self.stack.store().now_us() / PERIOD_US;
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for period in [period, period.saturating_sub(1)] {
            for (member, denials) in stored.of(&escape_name(policy), period).await? {
                let sum = sums.entry(member).or_default();
                *sum = sum.saturating_add(denials);
            }
        }
        Ok(sums.into_iter().filter_map(|(member, denials)| read(policy, &member, denials)).collect())
    }
}

/// A subject as it is published: `label:subject`, where the main subject has an empty label.
fn member(id: SubjectId<'_>) -> String {
    format!("{}:{}", id.label.map(percent_encode).unwrap_or_default(), id.subject)
}

/// Reads a published subject, or returns `None` if it has another form.
fn read(policy: &str, member: &str, denials: u64) -> Option<DeniedSubject> {
    let (label, subject) = member.split_once(':')?;
    let label = if label.is_empty() { None } else { Some(percent_decode(label)?) };
    let subject = Subject::from_escaped(subject)?;
    Some(DeniedSubject { policy: policy.to_owned(), label, subject, denials, max_denials: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_subject_says_which_of_the_policys_subjects_it_is() {
        for (label, subject, text) in [
            (None, "sms:138", ":sms:138"),
            (None, "", ":"),
            (Some("net work"), "10.0.0.0%2F8", "net%20work:10.0.0.0%2F8"),
        ] {
            assert_eq!(member(SubjectId { label, subject }), text);
            let read = read("p", text, 3).unwrap();
            assert_eq!((read.label(), read.subject().to_string().as_str(), read.denials()), (label, subject, 3));
        }
        for other in ["alice", "%4:alice", ":é"] {
            assert!(read("p", other, 1).is_none(), "{other}");
        }
    }
}
