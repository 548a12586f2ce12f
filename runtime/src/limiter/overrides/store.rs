//! Overrides in the store of a limiter: in this process, or in Redis, where they are adopted about once a second.

use std::collections::HashSet;
use std::hash::BuildHasher as _;
use std::mem;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::yield_now;

use super::active::{ActiveOverride, OverrideTable};
use super::known::{Overrides, too_many};
use super::refresh::ReadNumber;
use super::target::OverrideTarget;
use super::text;
use crate::bounds::MOST_OVERRIDES;
use crate::context;
use crate::error::{BackendError, Error};
use crate::limiter::background::RunningTask;
use crate::limiter::core::Core;
use crate::observe::{GaugeChange, log};
use crate::store::{StoredOverrides, StoredText, stored_operator};
use crate::system::home::Side;

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
struct Found {
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

impl Overrides {
    /// Adopts what was found, unless a newer read was adopted. Returns the policies whose overrides have changed.
    fn adopt(&self, reading: &ReadNumber, version: Option<String>, found: Found, now_us: u64) -> HashSet<String> {
        let adopted = self.read_order.adopt(reading, || self.replace(version, found, now_us));
        adopted.map(|(changed, _shown)| changed).unwrap_or_default()
    }

    /// Records that more is stored than can be adopted, unless a newer read was adopted. Returns whether that is new.
    fn keep_known(&self, reading: &ReadNumber, version: Option<String>, excess: String) -> bool {
        let adopted = self.read_order.adopt(reading, || {
            self.change(|known| {
                known.version = version;
                known.excess.replace(excess).is_none()
            })
        });
        adopted.is_some_and(|(is_new, _shown)| is_new)
    }

    /// Returns why the known overrides stay in force, if more is stored than can be adopted.
    fn excess(&self) -> Option<String> {
        self.read().excess.as_ref().map(|excess| format!("{excess}; clear some"))
    }

    /// Reads what is stored, and lets other tasks run in between. Unreadable overrides are left out, and each is
    /// reported once.
    async fn read_stored(&self, stored: Vec<StoredText>) -> Found {
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

impl Core {
    ///
    /// # Errors
    ///
    /// Redis does not answer, or more is stored than can be adopted.
    pub(in crate::limiter) async fn adopt_stored_overrides(&self) -> Result<(), BackendError> {
        if let Some(stored) = self.store.overrides() {
            self.adopt_overrides(&stored).await?;
            self.overrides.excess().map_or(Ok(()), |reason| Err(BackendError::new(reason)))?;
        }
        self.remove_expired_overrides();
        Ok(())
    }

    /// Returns the time of the store, after asking the server for it.
    pub(super) async fn refreshed_now_us(&self) -> Result<u64, Error> {
        self.store.refresh_time().await?;
        Ok(self.store.now_us())
    }

    pub(super) async fn set_override(&self, target: OverrideTarget, new: ActiveOverride) -> Result<(), Error> {
        if let Some(stored) = self.store.overrides() {
            return self.store_override(&stored, &target, Some(&new.text)).await.map(drop);
        }
        self.remove_expired_overrides();
        self.overrides.put(target, new)
    }

    pub(super) async fn clear_override(&self, target: &OverrideTarget) -> Result<bool, Error> {
        if let Some(stored) = self.store.overrides() {
            return self.store_override(&stored, target, None).await;
        }
        self.remove_expired_overrides();
        Ok(self.overrides.remove(target))
    }

    /// Starts a refresh of the overrides if it is due. Returns a receiver that changes when it ends, if the known
    /// overrides are too old to be used.
    pub(in crate::limiter) fn refresh_overrides(self: &Arc<Self>) -> Option<watch::Receiver<()>> {
        // In memory, all overrides are known.
        self.layers.as_ref()?;
        let side = self.runtimes.side();
        let timer = self.overrides.timer(side);
        if !timer.is_due() {
            return None;
        }
        if let Some(task) = timer.begin() {
            self.runtimes.spawn(refresh(Arc::clone(self), side, task));
        }
        timer.awaited()
    }

    /// Stores or removes an override, adopts what is stored then, and returns whether there was one.
    pub(super) async fn store_override(
        &self,
        stored: &StoredOverrides<'_>,
        target: &OverrideTarget,
        text: Option<&str>,
    ) -> Result<bool, Error> {
        let field = target.field();
        let found = match stored.all(MOST_OVERRIDES).await? {
            Ok(all) => all,
            Err(_) => stored.at_least(MOST_LOOKED_AT).await?,
        };
        // Only after that answer: in a cluster, it shows which node has the overrides, and the clock of that node
        // counts.
        self.store.refresh_time().await?;
        let expired: Vec<_> = found.into_iter().filter(|stored| is_expired(stored, self.store.now_us())).collect();
        let was_expired = expired.iter().any(|stored| stored.field == field);
        let changed =
            stored.change(&field, text, context::operator().as_deref(), MOST_OVERRIDES, at_once(expired)).await?;
        let was_there = changed.ok_or_else(too_many)?;
        self.adopt_overrides(stored).await?;
        match self.overrides.excess() {
            Some(reason) => {
                Err(BackendError::new(format!("the change is stored, but no process adopts it: {reason}")).into())
            }
            None => Ok(was_there && !was_expired),
        }
    }

    /// Adopts what is stored, unless more is stored than can be adopted.
    async fn adopt_overrides(&self, stored: &StoredOverrides<'_>) -> Result<(), BackendError> {
        let reading = self.overrides.read_order.begin();
        let version = stored.version().await?;
        if version == self.overrides.read().version {
            // Other decisions learn the time from the server's answer, but decisions of a closed limit do not ask the
            // server.
            if self.overrides.any_expires() {
                self.store.refresh_time().await?;
            }
            return Ok(());
        }
        let all = match stored.all(MOST_OVERRIDES).await? {
            Ok(all) => all,
            Err(excess) => {
                if self.overrides.keep_known(&reading, version, excess) {
                    log::too_many_overrides(MOST_OVERRIDES);
                }
                return Ok(());
            }
        };
        if all.iter().any(|stored| text::expires_us(&stored.text).is_some()) {
            self.store.refresh_time().await?;
        }
        let operator = version.as_deref().and_then(stored_operator);
        let found = self.overrides.read_stored(all).await;
        for policy in self.overrides.adopt(&reading, version, found, self.store.now_us()) {
            self.overrides.lines.report(|| log::overridden(&policy, operator.as_deref()));
        }
        Ok(())
    }
}

/// Returns as many expired overrides as one change removes.
fn at_once(expired: Vec<StoredText>) -> impl Iterator<Item = StoredText> {
    let mut bytes = 0;
    expired.into_iter().take(MOST_REMOVED).take_while(move |stored| {
        bytes += stored.field.len() + stored.text.len();
        bytes <= MOST_REMOVED_BYTES
    })
}

fn is_expired(stored: &StoredText, now_us: u64) -> bool {
    text::expires_us(&stored.text).is_some_and(|expires_us| expires_us <= now_us)
}

/// Refreshes in a task of its own, so that a caller that is dropped does not end what others wait for.
async fn refresh(core: Arc<Core>, side: Side, task: RunningTask) {
    if let Some(stored) = core.store.overrides() {
        let outcome = core.adopt_overrides(&stored).await;
        core.overrides.timer(side).finish(&outcome);
    }
    drop(task);
    core.go_on_registering();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored<const N: usize>(texts: [(&str, &str); N]) -> Vec<StoredText> {
        texts.map(|(field, text)| StoredText { field: field.to_owned(), text: text.to_owned() }).into()
    }

    /// The adopted version, and the number of its overrides.
    fn known(overrides: &Overrides) -> (String, usize) {
        let known = overrides.read();
        (known.version.clone().unwrap_or_default(), known.table.len())
    }

    async fn adopt<const N: usize>(
        overrides: &Overrides,
        reading: &ReadNumber,
        version: &str,
        texts: [(&str, &str); N],
    ) -> usize {
        let found = overrides.read_stored(stored(texts)).await;
        overrides.adopt(reading, Some(version.to_owned()), found, 0).len()
    }

    #[tokio::test]
    async fn a_refresh_that_began_before_a_change_does_not_undo_it() {
        let overrides = Overrides::default();
        let refresh = overrides.read_order.begin();
        let change = overrides.read_order.begin();
        assert_eq!(adopt(&overrides, &change, "new", [("sms", "0 per 1h")]).await, 1);
        assert_eq!(adopt(&overrides, &refresh, "old", []).await, 0, "no policy is changed back");
        assert_eq!(known(&overrides), ("new".to_owned(), 1));
        overrides.keep_known(&refresh, Some("old".to_owned()), String::new());
        assert_eq!((known(&overrides), overrides.excess()), (("new".to_owned(), 1), None));
    }

    #[tokio::test]
    async fn a_refresh_that_began_after_a_change_replaces_it() {
        let overrides = Overrides::default();
        let change = overrides.read_order.begin();
        let refresh = overrides.read_order.begin();
        adopt(&overrides, &change, "old", [("sms", "0 per 1h")]).await;
        adopt(&overrides, &refresh, "new", []).await;
        assert_eq!(known(&overrides), ("new".to_owned(), 0));
    }

    #[tokio::test]
    async fn a_reading_without_an_answer_keeps_no_other_from_being_adopted() {
        let overrides = Overrides::default();
        let earlier = overrides.read_order.begin();
        let _unanswered = overrides.read_order.begin();
        adopt(&overrides, &earlier, "read", [("sms", "0 per 1h")]).await;
        assert_eq!(known(&overrides), ("read".to_owned(), 1));
    }
}
