//! Overrides in Redis: storing them, and adopting what other processes have stored, about once a second.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tallygate_rules::Rule;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Field, MOST_OVERRIDES, Override, Overrides, Table, text, too_many};
use crate::error::{BackendError, Error};
use crate::limiter::core::Core;
use crate::observe::log;
use crate::store::{Redis, Store};

impl Overrides {
    /// Whether it is time for a refresh.
    pub(in crate::limiter) fn is_due(&self) -> bool {
        self.timer.is_due(Instant::now())
    }

    fn adopt(&self, version: Option<String>, entries: Vec<(String, String)>) {
        // Parsed before the lock is taken. `None` stands for an override that is known already.
        let mut found = Vec::with_capacity(entries.len());
        for (name, text) in entries {
            let field = Field::named(&name);
            if self.read().get(&field).is_some_and(|known| *known.text == *text) {
                found.push((field, None));
                continue;
            }
            match text::read(&text) {
                Ok(rules) => found.push((field, Some(Override { text: text.into(), ..Override::new(rules) }))),
                Err(mistake) => log::override_ignored(&field.policy, &mistake),
            }
        }
        self.replace(version, found).iter().for_each(|policy| log::overridden(policy));
    }

    /// Replaces what was known by what was found, and returns the policies for which they differ.
    fn replace(&self, version: Option<String>, found: Vec<(Field, Option<Override>)>) -> HashSet<String> {
        let mut table = self.write();
        let mut next = Table { version, ..Table::default() };
        let mut changed = HashSet::new();
        for (field, new) in found {
            if new.is_some() {
                changed.insert(field.policy.clone());
            }
            let known = table.remove(&field);
            // An override that is still the same keeps the policies that were made of it.
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

impl Core {
    /// Starts a refresh of the overrides if it is due. Returns what to wait for, until it closes, if the known ones are too
    /// old.
    pub(in crate::limiter) fn refresh_overrides(self: &Arc<Self>) -> Option<watch::Receiver<()>> {
        if !self.overrides.is_due() {
            return None;
        }
        // Without a runtime there is no decision either, and that error says why.
        let runtime = Handle::try_current().ok()?;
        self.overrides.timer.start(|done| drop(runtime.spawn(refresh(Arc::clone(self), done))))
    }

    /// Stores an override, or removes it, and adopts what is stored then.
    pub(super) async fn store_override(
        &self,
        redis: &Redis,
        field: &Field,
        rules: Option<&[Rule]>,
    ) -> Result<(), Error> {
        let stored = redis.overrides(&self.prefix);
        let name = field.name();
        let text = match rules {
            Some(rules) => Some(text::write(rules).ok_or_else(|| {
                Error::new(format!("policy `{}`: these rules take too much room; use fewer", field.policy))
            })?),
            None => None,
        };
        // One that is there already may always be replaced.
        if text.is_some() && stored.len().await? > MOST_OVERRIDES && !stored.has(&name).await? {
            return Err(too_many());
        }
        stored.put(&name, text.as_deref()).await?;
        Ok(self.adopt_overrides(redis).await?)
    }

    async fn adopt_overrides(&self, redis: &Redis) -> Result<(), BackendError> {
        let stored = redis.overrides(&self.prefix);
        let version = stored.version().await?;
        if version == self.overrides.read().version {
            return Ok(());
        }
        if let Some(entries) = stored.all(MOST_OVERRIDES).await? {
            self.overrides.adopt(version, entries);
        } else {
            log::too_many_overrides(MOST_OVERRIDES);
            self.overrides.write().version = version;
        }
        Ok(())
    }
}

impl Field {
    /// Neither part contains the colon between them: a policy's name has its colons escaped.
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

/// Refreshes in a task of its own, so that a caller that is dropped does not end what others wait for.
async fn refresh(core: Arc<Core>, done: watch::Sender<()>) {
    if let Store::Redis(redis) = &core.store {
        let outcome = core.adopt_overrides(redis).await;
        core.overrides.timer.finish(&outcome);
    }
    drop(done);
}
