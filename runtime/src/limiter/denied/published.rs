//! Denied subjects in Redis: what all processes have counted, by hour.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::sketch::{SketchedSubject, SubjectId};
use super::{DeniedSubject, DeniedSubjects};
use crate::error::BackendError;
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
    pub(super) async fn publish_denied(&self) -> Result<(), BackendError> {
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
    pub(super) async fn published_denied(
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
