//! Setting, clearing and listing overrides, and adopting those that processes share.

use std::collections::HashSet;
use std::hash::BuildHasher as _;
use std::mem;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::yield_now;

use super::active::{ActiveOverride, Override, OverrideTable};
use super::checks::refuse;
use super::refresh::ReadNumber;
use super::target::{OverrideContent, OverrideTarget};
use super::{Overrides, text, too_many};
use crate::bounds::MOST_OVERRIDES;
use crate::context;
use crate::error::{BackendError, Error};
use crate::observe::{GaugeChange, log};
use crate::policy::Policy;
use crate::store::{OverrideStore, StoredText, stored_operator};
use crate::system::Instant;
use crate::system::home::{RunningTask, Runtimes, Side};
use crate::system::under_way::TaskKind;

/// The most expired overrides that one change removes, and the most bytes of their texts. The server does nothing else
/// at that time.
const MOST_REMOVED: usize = 250;
const MOST_REMOVED_BYTES: usize = 64 * 1024;

/// How many overrides a change searches for expired ones, if more are stored than can be adopted.
const MOST_LOOKED_AT: usize = 2 * MOST_OVERRIDES;

/// How many bytes of overrides are read before other tasks run, and how many bytes an override costs besides its own.
const BYTES_AT_ONCE: usize = 16 * 1024;
const LEAST_BYTES: usize = 1024;

#[derive(Default)]
pub(super) struct Found {
    overrides: Vec<FoundOverride>,
    /// The hashes of overrides that cannot be read.
    unreadable: HashSet<u64>,
}

struct FoundOverride {
    target: OverrideTarget,
    text: String,
    /// `None` if the override is already known.
    new: Option<ActiveOverride>,
}

impl FoundOverride {
    /// Returns the override. If its text is unchanged, it is the old one, which keeps its results.
    fn active(self, old: Option<ActiveOverride>) -> Option<ActiveOverride> {
        let unchanged = || old.filter(|old| *old.text == *self.text);
        // The override that was known during the read may have been replaced since.
        self.new.or_else(unchanged).or_else(|| ActiveOverride::read(&self.target, &self.text).ok())
    }
}

impl<S> Overrides<S> {
    /// Adopts what was found, unless a newer read was adopted. Returns the policies whose overrides have changed.
    pub(super) fn adopt_found(
        &self,
        reading: &ReadNumber,
        version: Option<String>,
        found: Found,
        now_us: u64,
    ) -> HashSet<String> {
        let adopted = self.read_order.adopt(reading, || self.replace(version, found, now_us));
        adopted.map(|(changed, _shown)| changed).unwrap_or_default()
    }

    /// Records that more is stored than can be adopted, unless a newer read was adopted. Returns whether that is new.
    pub(super) fn keep_known(&self, reading: &ReadNumber, version: Option<String>, excess: String) -> bool {
        let adopted = self.read_order.adopt(reading, || {
            self.change(|known| {
                known.version = version;
                known.excess.replace(excess).is_none()
            })
        });
        adopted.is_some_and(|(is_new, _shown)| is_new)
    }

    /// Returns why the known overrides stay in force, if more is stored than can be adopted.
    pub(super) fn excess(&self) -> Option<String> {
        self.read().excess.as_ref().map(|excess| format!("{excess}; clear some"))
    }

    /// Reads what is stored, and lets other tasks run in between. Unreadable overrides are left out, and each is
    /// reported once.
    pub(super) async fn read_stored(&self, stored: Vec<StoredText>) -> Found {
        let mut found = Found::default();
        let mut bytes = 0;
        for StoredText { field, text } in stored {
            let hash = self.hasher.hash_one((&field, &text));
            if self.read().unreadable.contains(&hash) {
                found.unreadable.insert(hash);
                continue;
            }
            bytes += LEAST_BYTES + field.len() + text.len();
            if bytes >= BYTES_AT_ONCE {
                bytes = 0;
                yield_now().await;
            }
            match self.read_one(&field, text) {
                Ok(one) => found.overrides.push(one),
                Err((policy, mistake)) => {
                    found.unreadable.insert(hash);
                    self.lines.report(|| log::override_ignored(&policy, &mistake));
                }
            }
        }
        found
    }

    /// Reads an override. The error is the name of its probable policy, and the mistake.
    fn read_one(&self, field: &str, text: String) -> Result<FoundOverride, (String, String)> {
        // Only the policy is reported, as the subject may be personal.
        let policy = || field.split(':').next().unwrap_or_default().to_owned();
        let target = OverrideTarget::from_field(field)
            .ok_or_else(|| (policy(), "its field is not of the form `policy=label:subject`".to_owned()))?;
        let is_known = self.read().table.get(&target).is_some_and(|known| *known.text == *text);
        let read = (!is_known).then(|| ActiveOverride::read(&target, &text)).transpose();
        let new = read.map_err(|mistake| (target.key().policy.to_owned(), mistake))?;
        Ok(FoundOverride { target, text, new })
    }

    /// Replaces the known overrides by those that were found and have not expired. Returns the policies whose overrides
    /// have changed.
    fn replace(&self, version: Option<String>, found: Found, now_us: u64) -> (HashSet<String>, GaugeChange) {
        self.change(|known| {
            let mut before = mem::take(&mut known.table);
            let mut next = OverrideTable::default();
            let mut changed = HashSet::new();
            for one in found.overrides {
                let (target, is_new) = (one.target.clone(), one.new.is_some());
                let active = one.active(before.remove(&target));
                let Some(active) = active.filter(|active| !active.is_expired(now_us)) else { continue };
                if is_new {
                    changed.insert(target.key().policy.to_owned());
                }
                next.insert(target, active);
            }
            changed.extend(before.keys().map(|target| target.key().policy.to_owned()));
            known.table = next;
            known.version = version;
            known.excess = None;
            known.unreadable = found.unreadable;
            changed
        })
    }
}

/// A refresh that has begun. It ends when it is dropped.
pub(in crate::limiter) struct BegunRefresh {
    side: Side,
    _running: RunningTask,
}

/// When the rules in force are read.
impl<S: OverrideStore> Overrides<S> {
    /// Starts a refresh if it is due: `task` makes its task. Returns a receiver that changes when it ends, if the known
    /// overrides are too old to be used.
    pub(in crate::limiter) fn refresh<F: Future<Output = ()> + Send + 'static>(
        &self,
        runtimes: &Arc<Runtimes>,
        task: impl FnOnce(BegunRefresh) -> F,
    ) -> Option<watch::Receiver<()>> {
        // In memory, all overrides are known.
        self.shared.as_ref()?;
        let side = runtimes.side();
        let timer = self.timer(side);
        if !timer.is_due() {
            return None;
        }
        if let Some(running) = timer.begin() {
            // A task of its own, so that a caller that is dropped does not end what others wait for.
            runtimes.spawn(TaskKind::Other, task(BegunRefresh { side, _running: running }));
        }
        timer.awaited()
    }

    pub(in crate::limiter) async fn run(&self, refresh: BegunRefresh) {
        if let Some(shared) = &self.shared {
            let outcome = self.adopt_shared(&**shared).await;
            self.timer(refresh.side).finish(&outcome);
        }
    }

    /// Waits until a refresh ends, for as long as a decision by `policy` may take. Returns the deadline of this decision,
    /// which the refresh shares. The call is decided even if the refresh fails.
    pub(in crate::limiter) async fn wait_for(
        &self,
        mut refresh: watch::Receiver<()>,
        policy: &Policy,
    ) -> Result<Option<Instant>, BackendError> {
        let Some(shared) = &self.shared else { return Ok(None) };
        let ended = async {
            let _ = refresh.changed().await;
            Ok(())
        };
        Ok(Some(shared.wait_for(policy, ended).await?.1))
    }

    /// Adopts the overrides that are in force now, for as long as a decision by `policy` may take.
    pub(in crate::limiter) async fn adopt_for(&self, policy: &Policy) -> Result<(), BackendError> {
        match &self.shared {
            Some(shared) => shared.wait_for(policy, self.adopt()).await?.0,
            None => self.adopt().await,
        }
    }
}

impl<S: OverrideStore> Overrides<S> {
    /// Adopts the overrides that are in force now.
    ///
    /// # Errors
    ///
    /// The store does not answer, or more is stored than can be adopted.
    async fn adopt(&self) -> Result<(), BackendError> {
        if let Some(shared) = &self.shared {
            self.adopt_shared(&**shared).await?;
            self.excess().map_or(Ok(()), |reason| Err(BackendError::new(reason)))?;
        }
        self.remove_expired();
        Ok(())
    }

    pub(in crate::limiter) async fn list(&self) -> Result<Vec<Override>, Error> {
        self.adopt().await?;
        let now_us = self.now_us();
        let mut listed: Vec<_> = self.read().table.iter().map(|(target, found)| found.listed(target, now_us)).collect();
        listed.sort_by_cached_key(|one| {
            (one.policy().to_owned(), one.label().map(str::to_owned), one.subject().map(ToString::to_string))
        });
        Ok(listed)
    }

    pub(in crate::limiter) async fn get(&self, target: &OverrideTarget) -> Result<Option<Override>, Error> {
        self.adopt().await?;
        let now_us = self.now_us();
        Ok(self.read().table.get(target).map(|found| found.listed(target, now_us)))
    }

    /// Sets an override that holds for so many microseconds.
    pub(in crate::limiter) async fn set(
        &self,
        target: OverrideTarget,
        content: OverrideContent,
        holds_us: Option<u64>,
    ) -> Result<(), Error> {
        if holds_us.is_some()
            && let Some(shared) = &self.shared
        {
            shared.ask_override_time().await?;
        }
        let expires_us = holds_us.map(|us| self.now_us().saturating_add(us));
        let text = text::write(&content, expires_us)
            .ok_or_else(|| refuse(&target, "these rules take too much room; use fewer"))?;
        if let Some(shared) = &self.shared {
            return self.change_shared(&**shared, &target, Some(&text)).await.map(drop);
        }
        self.remove_expired();
        let new = ActiveOverride::new(&target, content, expires_us, &text);
        self.put(target, new)
    }

    /// Removes an override. Returns whether there was one.
    pub(in crate::limiter) async fn clear(&self, target: &OverrideTarget) -> Result<bool, Error> {
        if let Some(shared) = &self.shared {
            return self.change_shared(&**shared, target, None).await;
        }
        self.remove_expired();
        Ok(self.remove(target))
    }

    /// Stores or removes an override, adopts what is stored then, and returns whether there was one.
    async fn change_shared(&self, shared: &S, target: &OverrideTarget, text: Option<&str>) -> Result<bool, Error> {
        let field = target.field();
        let found = match shared.all_overrides(MOST_OVERRIDES).await? {
            Ok(all) => all,
            Err(_) => shared.some_overrides(MOST_LOOKED_AT).await?,
        };
        // Only after that answer: in a cluster, it shows which node has the overrides, and the clock of that node
        // counts.
        shared.ask_override_time().await?;
        let expired: Vec<_> = found.into_iter().filter(|stored| is_expired(stored, self.now_us())).collect();
        let was_expired = expired.iter().any(|stored| stored.field == field);
        let operator = context::operator();
        let changed =
            shared.change_override(&field, text, operator.as_deref(), MOST_OVERRIDES, at_once(expired)).await?;
        let was_there = changed.ok_or_else(too_many)?;
        self.adopt_shared(shared).await?;
        match self.excess() {
            Some(reason) => {
                Err(BackendError::new(format!("the change is stored, but no process adopts it: {reason}")).into())
            }
            None => Ok(was_there && !was_expired),
        }
    }

    /// Adopts what is stored, unless more is stored than can be adopted.
    async fn adopt_shared(&self, shared: &S) -> Result<(), BackendError> {
        let reading = self.read_order.begin();
        let version = shared.overrides_version().await?;
        if version == self.read().version {
            // Other decisions learn the time from the server's answer, but decisions of a closed limit do not ask the
            // server.
            if self.any_expires() {
                shared.ask_override_time().await?;
            }
            return Ok(());
        }
        let all = match shared.all_overrides(MOST_OVERRIDES).await? {
            Ok(all) => all,
            Err(excess) => {
                if self.keep_known(&reading, version, excess) {
                    log::too_many_overrides(MOST_OVERRIDES);
                }
                return Ok(());
            }
        };
        if all.iter().any(|stored| text::expires_us(&stored.text).is_some()) {
            shared.ask_override_time().await?;
        }
        let operator = version.as_deref().and_then(stored_operator);
        let found = self.read_stored(all).await;
        for policy in self.adopt_found(&reading, version, found, self.now_us()) {
            self.lines.report(|| log::overridden(&policy, operator.as_deref()));
        }
        Ok(())
    }
}

/// Returns as many expired overrides as one change removes.
fn at_once(expired: Vec<StoredText>) -> Vec<StoredText> {
    let mut bytes = 0;
    let fits = |stored: &StoredText| {
        bytes += stored.field.len() + stored.text.len();
        bytes <= MOST_REMOVED_BYTES
    };
    expired.into_iter().take(MOST_REMOVED).take_while(fits).collect()
}

fn is_expired(stored: &StoredText, now_us: u64) -> bool {
    text::expires_us(&stored.text).is_some_and(|expires_us| expires_us <= now_us)
}
