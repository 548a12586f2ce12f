//! The subjects that have a tally.

use std::collections::{BTreeSet, HashSet};
use std::hash::BuildHasher;
use std::time::Duration;

use crate::error::{BackendError, Error};
use crate::limiter::Limiter;
use crate::observe::opaque_debug;
use crate::policy::Policy;
use crate::store::{Scan, Store};
use crate::subject::Subject;
use crate::system::{RandomState, TokioInstant, sleep_until};

/// The shortest pause after a step, in which the server serves others.
const PAUSE: Duration = Duration::from_millis(1);

/// The most subjects that a scan returns, because it remembers each of them.
const MOST_SUBJECTS: usize = 50_000_000;

/// The subjects that have a tally of some policies, found step by step: see [`Limiter::tallies`].
pub struct Tallies<'a> {
    store: Store<'a>,
    prefix: &'a str,
    /// The part of the keys before the layout: the policy, and the label and the unit if there are any. Before it comes the
    /// place of the policy and the label.
    names: Vec<(usize, String)>,
    scan: Option<Scan<'a>>,
    /// The hashes of the returned subjects. Among a billion subjects, two may share a hash.
    seen: HashSet<u64, RandomState>,
    hasher: RandomState,
    /// The time of the next step.
    next: TokioInstant,
}

/// The result of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct TallyPage {
    /// For each subject, the index of its policy and label among those that are scanned.
    places: Vec<usize>,
    subjects: Vec<Subject>,
    progress: f64,
}

impl Limiter {
    /// Finds the subjects that have a tally of the policy: its main subjects, or those of a label.
    ///
    /// A server finds them only by a scan of all its keys, including those of other programs. It makes many steps of
    /// less than a millisecond, with pauses as long as the steps, so that other calls go on. In a cluster, one node is
    /// scanned after the other. A subject is returned once. A subject that comes or goes during the scan may be
    /// missing. A tally stays for some time after its last hit has stopped counting, so a subject may have nothing left
    /// that counts. The tallies of all units are looked at.
    ///
    /// In memory, a step locks one small part of the tallies after the other. It leaves out subjects that have nothing left
    /// that counts, and those that others have [replaced](crate::guide::limitations#memory), even if they are denied.
    ///
    /// Tallies of every layout are found, also those of [overrides](Limiter::override_policy) with other windows, and
    /// those of earlier rules of the policy.
    ///
    /// # Errors
    ///
    /// The policy has no rule on a subject with that label.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use tallygate::{Limiter, Policy};
    ///
    /// # async fn list(limiter: &Limiter, policy: &Policy) -> Result<(), tallygate::Error> {
    /// let mut tallies = limiter.tallies(policy, None)?;
    /// while let Some(page) = tallies.next_page().await? {
    ///     for subject in page.subjects() {
    ///         println!("{subject}");
    ///     }
    ///     println!("{:.0} %", page.progress() * 100.0);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn tallies<'a>(&'a self, policy: &Policy, label: Option<&str>) -> Result<Tallies<'a>, Error> {
        Ok(Tallies::new(self, names_of(policy, label)?.into_iter().map(|names| (0, names)).collect()))
    }
}

/// Returns the names of the tallies of all units of a subject, also of those that only rules in shadow count.
fn names_of(policy: &Policy, label: Option<&str>) -> Result<BTreeSet<String>, Error> {
    let tried = policy.trials().iter().flat_map(|trial| trial.policy.groups());
    let groups = policy.groups().iter().chain(tried).filter(|group| group.label.as_deref() == label);
    let names: BTreeSet<_> = groups.map(|group| group.names().to_owned()).collect();
    if names.is_empty() {
        let subject = label.map_or_else(|| "the main subject".to_owned(), |label| format!("a subject `{label}`"));
        return Err(Error::new(format!("policy `{}` has no rule on {subject}", policy.name())));
    }
    Ok(names)
}

impl<'a> Tallies<'a> {
    /// Finds the subjects of the rule groups with these names, each behind the place with which its subjects are found.
    pub(super) fn new(limiter: &'a Limiter, names: Vec<(usize, String)>) -> Self {
        let (store, prefix) = (limiter.store(), limiter.prefix());
        Tallies {
            store,
            prefix,
            names,
            scan: None,
            seen: HashSet::default(),
            hasher: RandomState::default(),
            next: TokioInstant::now(),
        }
    }
}

impl Tallies<'_> {
    /// Also finds the subjects of another policy, or of another label, in the same scan. It starts again if it has begun.
    ///
    /// # Errors
    ///
    /// The policy has no rule on a subject with that label.
    pub fn and(mut self, policy: &Policy, label: Option<&str>) -> Result<Self, Error> {
        let place = self.names.last().map_or(0, |(last, _)| last + 1);
        self.names.extend(names_of(policy, label)?.into_iter().map(|names| (place, names)));
        self.scan = None;
        Ok(self)
    }

    /// Makes one step, after a pause since the last one. A step may find nothing. `None` is the end.
    ///
    /// # Errors
    ///
    /// A server does not answer within the deadline of the limiter. The next call repeats the step.
    pub async fn next_page(&mut self) -> Result<Option<TallyPage>, BackendError> {
        sleep_until(self.next).await;
        let began = TokioInstant::now();
        let stepped = self.step().await;
        let now = TokioInstant::now();
        self.next = now + now.saturating_duration_since(began).max(PAUSE);
        stepped
    }

    #[cfg(feature = "web")]
    pub(super) fn place(&self) -> Option<String> {
        self.scan.as_ref()?.upcoming().map(|(part, cursor)| format!("{part}-{cursor}"))
    }

    #[cfg(feature = "web")]
    pub(super) async fn go_on_from(&mut self, place: &str) -> Result<bool, BackendError> {
        let place = place.split_once('-').and_then(|(part, cursor)| Some((part.parse().ok()?, cursor.parse().ok()?)));
        let Some(place) = place else { return Ok(false) };
        let scan = self.scan.insert(begin_scan(self.store, self.prefix, &self.names).await?);
        Ok(scan.go_to(place))
    }

    async fn step(&mut self) -> Result<Option<TallyPage>, BackendError> {
        let scan = match &mut self.scan {
            Some(scan) => scan,
            none => none.insert(begin_scan(self.store, self.prefix, &self.names).await?),
        };
        let Some(step) = scan.step().await? else { return Ok(None) };
        if self.seen.len() > MOST_SUBJECTS {
            return Err(BackendError::new(format!(
                "there are more than {MOST_SUBJECTS} subjects, which are the most that are listed; look at fewer policies"
            )));
        }
        let found = step.subjects.iter().filter_map(|(name, text)| {
            let (place, _) = self.names.get(*name)?;
            Some((*place, text))
        });
        let new = found.filter(|found| self.seen.insert(self.hasher.hash_one(found)));
        let (places, subjects) = new.filter_map(|(place, text)| Some((place, Subject::from_escaped(text)?))).unzip();
        Ok(Some(TallyPage { places, subjects, progress: step.progress }))
    }
}

async fn begin_scan<'a>(store: Store<'a>, prefix: &str, names: &[(usize, String)]) -> Result<Scan<'a>, BackendError> {
    let names: Vec<_> = names.iter().map(|(_, names)| names.clone()).collect();
    store.scan(prefix, &names).await
}

// Leaves out the subjects, which may be personal.
opaque_debug!(Tallies<'_>, tallies => { names: tallies.names, found: tallies.seen.len() });

impl TallyPage {
    /// Returns the subjects that were not returned before, in no order. A value with the filter `hash` is shown as its
    /// digest.
    #[must_use]
    pub fn subjects(&self) -> &[Subject] {
        &self.subjects
    }

    /// Returns these subjects, each with the place of its policy and label among those that are looked through: 0 for those
    /// of [`Limiter::tallies`], then as they were [added](Tallies::and).
    pub fn found(&self) -> impl Iterator<Item = (usize, &Subject)> {
        self.places.iter().copied().zip(&self.subjects)
    }

    /// Returns about how much of the scan is done, from 0 to 1.
    #[must_use]
    pub fn progress(&self) -> f64 {
        self.progress
    }
}
