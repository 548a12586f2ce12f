//! Overrides in Redis: a hash of texts by policy and subject, and a version that every change renews.

use std::collections::BTreeMap;

use ::redis::{Cmd, FromRedisValue, cmd};
use tallygate_lua as lua;

use super::overrides_key;
use crate::bounds::ALL_OVERRIDES_BYTES;
use crate::error::BackendError;
use crate::store::redis::Redis;
use crate::store::redis_types::{LONGEST_VERSION, StoredText, new_version};

/// The field of the version. No policy's name begins like it in a field, so no override is mistaken for it.
const VERSION: &str = "!version";

/// How many overrides are read at once, if they are read in parts.
const PART: usize = 1_000;

/// The overrides of one prefix.
pub(crate) struct StoredOverrides<'a> {
    redis: &'a Redis,
    key: String,
}

impl Redis {
    /// The overrides.
    pub(crate) fn overrides(&self) -> StoredOverrides<'_> {
        StoredOverrides { redis: self, key: overrides_key(&self.setup.prefix) }
    }
}

impl StoredOverrides<'_> {
    /// Returns the version, which changes with every change.
    pub(crate) async fn version(&self) -> Result<Option<String>, BackendError> {
        let version: Option<Vec<u8>> = self.query(cmd("HGET").arg(&self.key).arg(VERSION)).await?;
        // No process writes a longer version.
        let text = |version: Vec<u8>| String::from_utf8_lossy(&version).chars().take(LONGEST_VERSION).collect();
        Ok(version.map(text))
    }

    /// Returns all overrides, or says of what there is more than is read.
    pub(crate) async fn all(&self, most: usize) -> Result<Result<Vec<StoredText>, String>, BackendError> {
        let too_many = || Ok(Err(format!("there are more than {most} overrides")));
        let fields: usize = self.query(cmd("HLEN").arg(&self.key)).await?;
        if fields > most + 1 {
            return too_many();
        }
        let all: BTreeMap<_, _> = self.query(cmd("HGETALL").arg(&self.key)).await?;
        let all: Vec<_> = all.into_iter().map(StoredText::read).filter(is_override).collect();
        let bytes: usize = all.iter().map(StoredText::bytes).sum();
        Ok(match all.len() {
            number if number > most => return too_many(),
            _ if bytes > ALL_OVERRIDES_BYTES => {
                Err(format!("the overrides are longer than {} MiB together", ALL_OVERRIDES_BYTES >> 20))
            }
            _ => Ok(all),
        })
    }

    /// Returns at least so many overrides, if there are so many, in parts that are never too much to read. One may be
    /// returned twice.
    pub(crate) async fn at_least(&self, number: usize) -> Result<Vec<StoredText>, BackendError> {
        let found = self.redis.scan_hash(&self.key, PART, number + 1, 2 * ALL_OVERRIDES_BYTES).await?;
        Ok(found.into_iter().filter(is_override).collect())
    }

    /// Stores a text in a field, or removes the field, after it has removed those that have expired. The version says who has
    /// done so, if that is known. Returns whether the field was there; `None` says that nothing was stored, as there are `most`
    /// others.
    pub(crate) async fn change(
        &self,
        field: &str,
        text: Option<&str>,
        operator: Option<&str>,
        most: usize,
        expired: impl IntoIterator<Item = StoredText>,
    ) -> Result<Option<bool>, BackendError> {
        let mut command = cmd("EVAL");
        command.arg(lua::OVERRIDE).arg(1).arg(&self.key);
        command.arg(new_version(operator)).arg(most).arg(field).arg(text.unwrap_or_default());
        for StoredText { field, text } in expired {
            command.arg(field).arg(text);
        }
        let were_there: i64 = self.query(&command).await?;
        Ok((were_there >= 0).then_some(were_there > 0))
    }

    async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, BackendError> {
        self.redis.query(&self.key, command).await
    }
}

/// Whether a field of the hash is an override, and not the version.
fn is_override(stored: &StoredText) -> bool {
    stored.field != VERSION
}
