//! Taking up what other processes have overridden: looked for while decisions are made, about once a second.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tallygate_rules::Rule;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Field, MOST_OVERRIDES, Override, Overrides, Table, text, too_many};
use crate::backend::{Redis, as_us};
use crate::{Error, Limiter, Outage, observe};

/// How old what is known grows before it is looked after.
const PERIOD: Duration = Duration::from_secs(1);

/// How old what is known may be for a decision to go by it. Decisions that come seldom wait for a look.
const OLDEST: Duration = Duration::from_secs(2);

/// When was looked last, and whether somebody is looking.
#[derive(Debug)]
pub(super) struct Refresh {
    started: Instant,
    due_us: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Closed once the look is over.
    looking: Option<watch::Receiver<()>>,
    seen: Option<Instant>,
    failing: bool,
}

impl Default for Refresh {
    fn default() -> Self {
        Self { started: Instant::now(), due_us: AtomicU64::new(0), state: Mutex::default() }
    }
}

impl Refresh {
    fn is_due(&self, now: Instant) -> bool {
        as_us(now.saturating_duration_since(self.started)) >= self.due_us.load(Ordering::Relaxed)
    }

    fn settle(&self, outcome: &Result<(), Outage>) {
        let now = Instant::now();
        let mut state = self.lock();
        match outcome {
            Ok(()) => (state.seen, state.failing) = (Some(now), false),
            Err(outage) => {
                if !state.failing {
                    observe::overrides_unread(outage);
                }
                state.failing = true;
            }
        }
        let due = now.saturating_duration_since(self.started) + PERIOD;
        self.due_us.store(as_us(due), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Overrides {
    /// Whether it is time for a look.
    pub(crate) fn is_due(&self) -> bool {
        self.refresh.is_due(Instant::now())
    }

    /// Has a look taken if it is time for one. Returns what to wait for, until it closes, if what is known is too old.
    pub(crate) fn look(&self, limiter: &Limiter) -> Option<watch::Receiver<()>> {
        let now = Instant::now();
        if !self.refresh.is_due(now) {
            return None;
        }
        // Without a runtime there is no decision either, which says why.
        let runtime = Handle::try_current().ok()?;
        let mut state = self.refresh.lock();
        // Of a look whose runtime is gone the other end is gone, too.
        let looking = state.looking.take().filter(|looking| looking.has_changed().is_ok());
        if looking.is_none() && !self.refresh.is_due(now) {
            return None;
        }
        let looking = looking.unwrap_or_else(|| {
            let (done, looking) = watch::channel(());
            runtime.spawn(look(limiter.clone(), done));
            looking
        });
        state.looking = Some(looking.clone());
        // In an outage everybody goes by what is known.
        let old = state.seen.is_none_or(|seen| now.saturating_duration_since(seen) >= OLDEST);
        (old && !state.failing).then_some(looking)
    }

    /// Stores an override, or removes it, and takes up what there is then.
    pub(super) async fn store(
        &self,
        limiter: &Limiter,
        redis: &Redis,
        field: &Field,
        rules: Option<&[Rule]>,
    ) -> Result<(), Error> {
        let stored = redis.overrides(limiter.prefix());
        let failed = |outage: Outage| Error::new(outage.to_string());
        let name = field.name();
        let text = match rules {
            Some(rules) => Some(text::write(rules).ok_or_else(|| {
                Error::new(format!("policy `{}`: these rules take too much room; use fewer", field.policy))
            })?),
            None => None,
        };
        // One that is there already may be replaced, come what may.
        if text.is_some()
            && stored.len().await.map_err(failed)? > MOST_OVERRIDES
            && !stored.has(&name).await.map_err(failed)?
        {
            return Err(too_many());
        }
        stored.put(&name, text.as_deref()).await.map_err(failed)?;
        self.take_up(limiter, redis).await.map_err(failed)
    }

    async fn take_up(&self, limiter: &Limiter, redis: &Redis) -> Result<(), Outage> {
        let stored = redis.overrides(limiter.prefix());
        let version = stored.version().await?;
        if version == self.read().version {
            return Ok(());
        }
        if let Some(entries) = stored.all(MOST_OVERRIDES).await? {
            self.adopt(version, entries);
        } else {
            observe::too_many_overrides(MOST_OVERRIDES);
            self.write().version = version;
        }
        Ok(())
    }

    fn adopt(&self, version: Option<String>, entries: Vec<(String, String)>) {
        // Reading takes its time, so it is done before the lock is taken. `None` stands for what is known already.
        let mut found = Vec::with_capacity(entries.len());
        for (name, text) in entries {
            let field = Field::named(&name);
            if self.read().get(&field).is_some_and(|known| *known.text == *text) {
                found.push((field, None));
                continue;
            }
            match text::read(&text) {
                Ok(rules) => found.push((field, Some(Override { text: text.into(), ..Override::new(rules) }))),
                Err(mistake) => observe::override_ignored(&field.policy, &mistake),
            }
        }
        self.replace(version, found).iter().for_each(|policy| observe::overridden(policy));
    }

    /// Puts what was found in the place of what was known, and tells the policies for which they differ.
    fn replace(&self, version: Option<String>, found: Vec<(Field, Option<Override>)>) -> HashSet<String> {
        let mut table = self.write();
        let mut next = Table { version, ..Table::default() };
        let mut changed = HashSet::new();
        for (field, new) in found {
            if new.is_some() {
                changed.insert(field.policy.clone());
            }
            let known = table.remove(&field);
            // Who is still the same keeps the policies that were made of it.
            if let Some(found) = new.or(known) {
                next.put(field, found);
            }
        }
        changed.extend(table.policies.keys().map(ToString::to_string));
        self.active.store(!next.policies.is_empty(), Ordering::Relaxed);
        *table = next;
        changed
    }
}

impl Field {
    /// Neither part of a name contains what stands between them: a policy's name has its colons escaped.
    fn name(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{}:{subject}", self.policy),
            None => self.policy.clone(),
        }
    }

    fn named(name: &str) -> Self {
        match name.split_once(':') {
            Some((policy, subject)) => Self { policy: policy.to_owned(), subject: Some(subject.to_owned()) },
            None => Self { policy: name.to_owned(), subject: None },
        }
    }
}

/// Looks in a task of its own, so that a caller that gives up does not undo what others wait for.
async fn look(limiter: Limiter, done: watch::Sender<()>) {
    if let crate::backend::Backend::Redis(redis) = limiter.backend() {
        let overrides = limiter.overrides();
        let outcome = overrides.take_up(&limiter, redis).await;
        overrides.refresh.settle(&outcome);
    }
    drop(done);
}
