//! Overrides: rules that change while the program runs.

mod admin;
#[cfg(feature = "redis")]
mod refresh_timer;
#[cfg(feature = "redis")]
mod sync;
#[cfg(feature = "redis")]
mod text;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use foldhash::quality::RandomState;
use tallygate_rules::Rule;

#[cfg(feature = "redis")]
use self::refresh_timer::RefreshTimer;
use crate::error::Error;
use crate::policy::Policy;
use crate::store::Outcome;
use crate::subject::{Subject, escape_name};

/// The most overrides of one limiter, those for single subjects included.
const MOST_OVERRIDES: usize = 10_000;

/// How many functions of one name an override remembers its policy for.
const MOST_MADE: usize = 8;

/// The overrides that this process knows of.
#[derive(Default)]
pub(crate) struct Overrides {
    /// Whether there are any.
    active: AtomicBool,
    table: RwLock<Table>,
    #[cfg(feature = "redis")]
    timer: RefreshTimer,
}

#[derive(Default)]
struct Table {
    /// The version of what was read from Redis.
    #[cfg(feature = "redis")]
    version: Option<String>,
    /// By the name of the policy, as it stands in keys.
    policies: HashMap<Box<str>, PolicyOverrides, RandomState>,
}

#[derive(Default)]
struct PolicyOverrides {
    all: Option<Override>,
    /// By subject, as it stands in keys.
    subjects: HashMap<Box<str>, Override, RandomState>,
}

/// The rules that stand in for those of a policy.
struct Override {
    /// As it is stored in Redis; empty where it is not.
    #[cfg(feature = "redis")]
    text: Box<str>,
    rules: Vec<Rule>,
    /// What became of the policies that asked lately.
    made: Mutex<Vec<(Policy, Policy)>>,
}

/// What an override is stored under: a policy's name, and perhaps a subject; both as they stand in keys.
struct Field {
    policy: String,
    subject: Option<String>,
}

impl Field {
    fn new(policy: &str, subject: Option<&Subject>) -> Self {
        Self { policy: escape_name(policy).to_string(), subject: subject.map(ToString::to_string) }
    }
}

impl Overrides {
    /// Returns the policy that stands in for this one, if one does.
    pub(crate) fn in_force(&self, policy: &Policy, subject: &str) -> Option<Policy> {
        let table = self.read();
        let overrides = table.policies.get(policy.escaped_name())?;
        let found = overrides.subjects.get(subject).or(overrides.all.as_ref())?;
        Some(found.applied_to(policy))
    }

    /// Whether there are any.
    pub(crate) fn are_active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    fn put(&self, field: Field, found: Override) -> Result<(), Error> {
        let mut table = self.write();
        if table.len() >= MOST_OVERRIDES && !table.has(&field) {
            return Err(too_many());
        }
        table.put(field, found);
        self.active.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn remove(&self, field: &Field) {
        let mut table = self.write();
        table.remove(field);
        self.active.store(!table.policies.is_empty(), Ordering::Relaxed);
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leaves out the subjects, which may be personal.
impl fmt::Debug for Overrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overrides").field("policies", &self.read().policies.len()).finish_non_exhaustive()
    }
}

impl Table {
    fn len(&self) -> usize {
        self.policies.values().map(|of| of.subjects.len() + usize::from(of.all.is_some())).sum()
    }

    fn get(&self, field: &Field) -> Option<&Override> {
        let overrides = self.policies.get(&*field.policy)?;
        match &field.subject {
            Some(subject) => overrides.subjects.get(&**subject),
            None => overrides.all.as_ref(),
        }
    }

    fn has(&self, field: &Field) -> bool {
        self.get(field).is_some()
    }

    fn put(&mut self, field: Field, found: Override) {
        let overrides = self.policies.entry(field.policy.into()).or_default();
        match field.subject {
            Some(subject) => _ = overrides.subjects.insert(subject.into(), found),
            None => overrides.all = Some(found),
        }
    }

    fn remove(&mut self, field: &Field) -> Option<Override> {
        let overrides = self.policies.get_mut(&*field.policy)?;
        let removed = match &field.subject {
            Some(subject) => overrides.subjects.remove(&**subject),
            None => overrides.all.take(),
        };
        if overrides.all.is_none() && overrides.subjects.is_empty() {
            self.policies.remove(&*field.policy);
        }
        removed
    }
}

impl Override {
    fn new(rules: Vec<Rule>) -> Self {
        Self {
            #[cfg(feature = "redis")]
            text: Box::default(),
            rules,
            made: Mutex::default(),
        }
    }

    /// Returns the policy with these rules instead of its own.
    fn applied_to(&self, policy: &Policy) -> Policy {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, made)) = made.iter().find(|(asked, _)| asked.is(policy)) {
            return made.clone();
        }
        let overridden = policy.with_rules(&self.rules);
        // Policies that are built for a single call do not pile up.
        if made.len() >= MOST_MADE {
            made.remove(0);
        }
        made.push((policy.clone(), overridden.clone()));
        overridden
    }
}

/// The outcome of every call if a rule has the count 0: the limit is closed.
pub(crate) fn closed(policy: &Policy) -> Option<Outcome> {
    let rule = policy.groups().iter().flat_map(|group| &group.rules).position(|rule| rule.count() == 0)?;
    Some(Outcome::Denied { rule, retry_after: None }.with_position(policy))
}

fn too_many() -> Error {
    Error::new(format!(
        "there are {MOST_OVERRIDES} overrides already; clear some, or give whole groups of subjects a policy of their own"
    ))
}
