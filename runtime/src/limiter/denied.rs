//! The subjects that are denied most often: a sketch of each policy's denials, in bounded memory.

mod listed;
mod sketch;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, RwLock};

pub use self::listed::DeniedSubject;
use self::sketch::{Sketch, SubjectId};
use crate::lock::{lock, read, write};
use crate::observe::{self, ReportedOnce, log, opaque_debug};
use crate::system::RandomState;
use crate::system::home::BackgroundTask;

/// The most policies whose denials are counted. A program may build a policy with a new name for each call.
const MOST_POLICIES_KEPT: usize = 1_000;

/// The greatest number of subjects of one policy that can be set.
pub(super) const MOST_SUBJECTS: usize = 10_000;

/// Counts denials by subject.
pub(super) struct DeniedSubjects {
    /// How many subjects are kept of each policy.
    max_subjects: NonZeroUsize,
    seed: RandomState,
    /// The sketches, by policy name.
    sketches: RwLock<HashMap<Box<str>, Mutex<Sketch>, RandomState>>,
    /// Reports once that there are too many policies.
    too_many: ReportedOnce,
    /// The task that publishes denials.
    publication: BackgroundTask,
}

impl DeniedSubjects {
    /// Returns `None` if no subject is to be kept.
    pub(super) fn new(max_subjects: usize) -> Option<Self> {
        let max_subjects = NonZeroUsize::new(max_subjects)?;
        observe::note_listener();
        Some(Self {
            max_subjects,
            seed: RandomState::default(),
            sketches: RwLock::default(),
            too_many: ReportedOnce::new(),
            publication: BackgroundTask::default(),
        })
    }

    pub(super) fn count(&self, policy: &str, label: Option<&str>, subject: &str) {
        let id = SubjectId { label, subject };
        let known = read(&self.sketches);
        if let Some(sketch) = known.get(policy) {
            return lock(sketch).count(id, &self.seed);
        }
        drop(known);
        let mut known = write(&self.sketches);
        if known.len() < MOST_POLICIES_KEPT || known.contains_key(policy) {
            let sketch = known.entry(policy.into()).or_insert_with(|| Mutex::new(Sketch::new(self.max_subjects)));
            return lock(sketch).count(id, &self.seed);
        }
        drop(known);
        if self.too_many.is_first() {
            log::too_many_policies_of_denials(MOST_POLICIES_KEPT);
        }
    }

    fn with_sketch(&self, policy: &str, visit: impl FnOnce(&mut Sketch)) {
        let known = read(&self.sketches);
        if let Some(sketch) = known.get(policy) {
            visit(&mut lock(sketch));
        }
    }

    fn for_each(&self, mut visit: impl FnMut(&str, &mut Sketch)) {
        let known = read(&self.sketches);
        known.iter().for_each(|(policy, sketch)| visit(policy, &mut lock(sketch)));
    }
}

// Leaves out the subjects, which may be personal.
opaque_debug!(DeniedSubjects { max_subjects });
