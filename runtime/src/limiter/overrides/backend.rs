//! Overrides in the backend of a limiter: in this process, or in Redis.

use super::active::ActiveOverride;
use super::target::OverrideTarget;
use crate::error::{BackendError, Error};
use crate::limiter::core::Core;
use crate::observe::log;
use crate::store::Store;

impl Core {
    /// Adopts what is stored now.
    pub(in crate::limiter) async fn adopt_stored_overrides(&self) -> Result<(), BackendError> {
        if let Store::Redis(redis) = &self.store {
            self.adopt_all_overrides(redis).await?;
        }
        self.remove_expired_overrides();
        Ok(())
    }

    /// The time of the store. A server is asked for it.
    pub(super) async fn refreshed_now_us(&self) -> Result<u64, Error> {
        if let Store::Redis(redis) = &self.store {
            redis.refresh_time().await?;
        }
        Ok(self.store.now_us())
    }

    pub(super) async fn set_override(&self, target: OverrideTarget, new: ActiveOverride) -> Result<(), Error> {
        match &self.store {
            Store::Memory(_) => {
                let name = target.key().policy.to_owned();
                self.remove_expired_overrides();
                self.overrides.put(target, new)?;
                log::overridden(&name);
                Ok(())
            }
            Store::Redis(redis) => self.store_override(redis, &target, Some(&new.text)).await.map(drop),
        }
    }

    pub(super) async fn clear_override(&self, target: &OverrideTarget) -> Result<bool, Error> {
        match &self.store {
            Store::Memory(_) => {
                self.remove_expired_overrides();
                let is_removed = self.overrides.remove(target);
                if is_removed {
                    log::overridden(target.key().policy);
                }
                Ok(is_removed)
            }
            Store::Redis(redis) => self.store_override(redis, target, None).await,
        }
    }
}
