//! The registry in Redis: a hash of the descriptions of policies, by their names.

use ::redis::cmd;
use tallygate_lua as lua;

use super::policies_key;
use crate::bounds::MOST_POLICIES;
#[cfg(feature = "admin")]
use crate::bounds::{DESCRIPTION_BYTES, WORD_BYTES};
use crate::error::BackendError;
use crate::store::redis::Redis;
use crate::store::redis::script::run::timed;
#[cfg(feature = "admin")]
use crate::store::redis_types::StoredText;
use crate::store::redis_types::{Progress, RegistrationResult};

/// How many seconds a policy stays in the list without being registered again: a week.
const STAY_SECONDS: u64 = 7 * 86_400;

/// How many policies are read at once.
#[cfg(feature = "admin")]
const POLICIES_AT_ONCE: usize = 64;

/// The registry of one prefix.
pub(crate) struct StoredPolicies<'a> {
    redis: &'a Redis,
    key: String,
}

impl Redis {
    /// The registry.
    pub(crate) fn policies(&self) -> StoredPolicies<'_> {
        StoredPolicies { redis: self, key: policies_key(&self.setup.prefix) }
    }
}

impl StoredPolicies<'_> {
    /// How often a connection was made to the server that has the registry; 0 if that is not known. If the number has
    /// changed, the server may have lost the registry.
    pub(crate) fn connections(&self) -> u64 {
        self.redis.connections(&self.key)
    }

    /// Registers policies, each by its name as it stands in keys and with its description, and looks at some that are
    /// there.
    pub(crate) async fn register<'p>(
        &self,
        policies: impl IntoIterator<Item = (&'p str, &'p str)>,
        progress: &Progress,
    ) -> Result<RegistrationResult, BackendError> {
        let clock = &self.redis.setup.clock;
        let mut command = cmd("EVAL");
        command.arg(timed(lua::REGISTER, clock)).arg(1).arg(&self.key).arg(MOST_POLICIES).arg(STAY_SECONDS);
        command.arg(match progress {
            Progress::At(cursor) => cursor,
            Progress::Done => "",
        });
        for (name, description) in policies {
            command.arg(name).arg(description);
        }
        if let Some(us) = clock.manual_us() {
            command.arg(us);
        }
        let (cursor, removed, refused): (String, u64, u64) = self.redis.query(&self.key, &command).await?;
        // A text that is no number is no cursor.
        let is_done = cursor.parse::<u64>().unwrap_or(0) == 0;
        let progress = if is_done { Progress::Done } else { Progress::At(cursor) };
        Ok(RegistrationResult { progress, removed, refused })
    }

    /// Returns all policies, each in the field of its name as it stands in keys. One that is registered meanwhile may be
    /// among them twice.
    ///
    /// # Errors
    ///
    /// The server does not answer, or there are more policies than any process writes.
    #[cfg(feature = "admin")]
    pub(crate) async fn all(&self) -> Result<Vec<StoredText>, BackendError> {
        let number: usize = self.redis.query(&self.key, cmd("HLEN").arg(&self.key)).await?;
        if number > MOST_POLICIES {
            return Err(BackendError::new(format!(
                "`{}` has {number} fields, more than this library writes; delete it, and it is written anew",
                self.key
            )));
        }
        // While the list changes, an entry may be returned twice.
        let most_bytes = 2 * MOST_POLICIES * (DESCRIPTION_BYTES + WORD_BYTES);
        self.redis.scan_hash(&self.key, POLICIES_AT_ONCE, usize::MAX, most_bytes).await
    }
}
