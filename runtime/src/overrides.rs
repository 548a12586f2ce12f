//! Rules that change while running.

#[cfg(feature = "redis")]
mod refresh;
#[cfg(feature = "redis")]
mod text;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use foldhash::quality::RandomState;
use tallygate_rules::{Rule, validate_override};

#[cfg(feature = "redis")]
use self::refresh::Refresh;
use crate::backend::{Backend, Verdict};
use crate::key::policy_segment;
use crate::{Error, Limiter, Policy, Subject, observe};

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
    refresh: Refresh,
}

#[derive(Default)]
struct Table {
    /// Names what was read from Redis.
    #[cfg(feature = "redis")]
    version: Option<String>,
    /// By the name of the policy, as it stands in keys.
    policies: HashMap<Box<str>, OfPolicy, RandomState>,
}

#[derive(Default)]
struct OfPolicy {
    everybody: Option<Override>,
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
        Self { policy: policy_segment(policy), subject: subject.map(ToString::to_string) }
    }
}

impl Overrides {
    /// Returns the policy that stands in for this one, if one does.
    pub(crate) fn in_force(&self, policy: &Policy, subject: &str) -> Option<Policy> {
        let table = self.read();
        let of_policy = table.policies.get(policy.escaped_name())?;
        let found = of_policy.subjects.get(subject).or(of_policy.everybody.as_ref())?;
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

/// Says nothing of the subjects, which may be personal.
impl fmt::Debug for Overrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overrides").field("policies", &self.read().policies.len()).finish_non_exhaustive()
    }
}

impl Table {
    fn len(&self) -> usize {
        self.policies.values().map(|of| of.subjects.len() + usize::from(of.everybody.is_some())).sum()
    }

    fn get(&self, field: &Field) -> Option<&Override> {
        let of_policy = self.policies.get(&*field.policy)?;
        match &field.subject {
            Some(subject) => of_policy.subjects.get(&**subject),
            None => of_policy.everybody.as_ref(),
        }
    }

    fn has(&self, field: &Field) -> bool {
        self.get(field).is_some()
    }

    fn put(&mut self, field: Field, found: Override) {
        let of_policy = self.policies.entry(field.policy.into()).or_default();
        match field.subject {
            Some(subject) => _ = of_policy.subjects.insert(subject.into(), found),
            None => of_policy.everybody = Some(found),
        }
    }

    fn remove(&mut self, field: &Field) -> Option<Override> {
        let of_policy = self.policies.get_mut(&*field.policy)?;
        let removed = match &field.subject {
            Some(subject) => of_policy.subjects.remove(&**subject),
            None => of_policy.everybody.take(),
        };
        if of_policy.everybody.is_none() && of_policy.subjects.is_empty() {
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

/// What a rule of count 0 says: the door is closed.
pub(crate) fn closed(policy: &Policy) -> Option<Verdict> {
    let rule = policy.groups().iter().flat_map(|group| &group.rules).position(|rule| rule.count() == 0)?;
    Some(Verdict::Denied { rule, retry_after: None })
}

fn too_many() -> Error {
    Error::new(format!(
        "there are {MOST_OVERRIDES} overrides already; clear some, or tell whole groups apart by a policy"
    ))
}

/// Rules that change while running.
#[cfg_attr(not(feature = "redis"), allow(clippy::unused_async, reason = "without Redis there is none to wait for"))]
impl Limiter {
    /// Lets these rules decide all calls of the policies of that name, instead of their own, until
    /// [`clear_override`](Self::clear_override).
    ///
    /// Tallies in Redis keep the override there: every process takes it up within about a second, two when it is idle,
    /// and it survives restarts. In memory it holds for this limiter.
    ///
    /// What has been counted stays counted, as far as the layout of the tallies is the same: counts change freely; other
    /// windows or algorithms start new tallies. A count of 0 closes the door. A rule for duplicates that is not among the
    /// new ones is gone meanwhile, too. Rules on other subjects of a call, and a ban, stay in force; a policy that has
    /// rules on other subjects alone is not overridden.
    ///
    /// # Errors
    ///
    /// Any mistake in the rules that the attribute would refuse when compiling, but for a count of 0; or Redis does not
    /// answer, and then the override may or may not be in force.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let (limiter, minute) = (Limiter::in_memory(), Duration::from_secs(60));
    /// let policy = Policy::builder("sms.send").rule(Rule::sliding_window(1, minute)).build()?;
    /// limiter.override_rules("sms.send", [Rule::sliding_window(0, minute)]).await?;
    /// assert!(!limiter.check(&policy, &Subject::of("138")).await?.is_allowed());
    ///
    /// limiter.clear_override("sms.send").await?;
    /// assert!(limiter.check(&policy, &Subject::of("138")).await?.is_allowed());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn override_rules(&self, policy: &str, rules: impl IntoIterator<Item: Into<Rule>>) -> Result<(), Error> {
        self.put_override(policy, None, rules.into_iter().map(Into::into).collect()).await
    }

    /// Lets these rules decide the calls of one subject, instead of those of the policy or of its override.
    ///
    /// The subject is the one that the calls are checked for: a `key` of `"user:{id}"` makes subjects like
    /// `Subject::of("user").and(7)`.
    ///
    /// # Errors
    ///
    /// As of [`override_rules`](Self::override_rules); also if there are 10,000 overrides already.
    pub async fn override_rules_for(
        &self,
        policy: &str,
        subject: &Subject,
        rules: impl IntoIterator<Item: Into<Rule>>,
    ) -> Result<(), Error> {
        self.put_override(policy, Some(subject), rules.into_iter().map(Into::into).collect()).await
    }

    /// Lets the policies of that name decide by their own rules again. Overrides for single subjects stay.
    ///
    /// # Errors
    ///
    /// Redis does not answer, and then the override may or may not be in force.
    pub async fn clear_override(&self, policy: &str) -> Result<(), Error> {
        self.remove_override(policy, None).await
    }

    /// Lets a subject be decided by the rules of everybody again.
    ///
    /// # Errors
    ///
    /// As of [`clear_override`](Self::clear_override).
    pub async fn clear_override_for(&self, policy: &str, subject: &Subject) -> Result<(), Error> {
        self.remove_override(policy, Some(subject)).await
    }

    async fn put_override(&self, policy: &str, subject: Option<&Subject>, rules: Vec<Rule>) -> Result<(), Error> {
        validate_override(&rules).map_err(|mistakes| Error::rules(policy, &mistakes))?;
        let field = Field::new(policy, subject);
        match self.backend() {
            Backend::Memory(_) => {
                self.overrides().put(field, Override::new(rules))?;
                observe::overridden(&policy_segment(policy));
                Ok(())
            }
            #[cfg(feature = "redis")]
            Backend::Redis(redis) => self.overrides().store(self, redis, &field, Some(&rules)).await,
        }
    }

    async fn remove_override(&self, policy: &str, subject: Option<&Subject>) -> Result<(), Error> {
        let field = Field::new(policy, subject);
        match self.backend() {
            Backend::Memory(_) => {
                self.overrides().remove(&field);
                observe::overridden(&policy_segment(policy));
                Ok(())
            }
            #[cfg(feature = "redis")]
            Backend::Redis(redis) => self.overrides().store(self, redis, &field, None).await,
        }
    }
}
