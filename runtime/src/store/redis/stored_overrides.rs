//! Overrides in Redis: a hash of rules by policy and subject, and a version that every change renews.

use std::collections::HashMap;

use ::redis::{Cmd, FromRedisValue, cmd, pipe};

use super::Redis;
use crate::error::BackendError;

/// The field of the version. No policy's name begins like it in a key, so no override is mistaken for it.
const VERSION: &str = "!version";

/// The overrides of one prefix.
pub(crate) struct StoredOverrides<'a> {
    redis: &'a Redis,
    key: String,
}

impl Redis {
    /// Returns the overrides of that prefix. Keys of tallies have two colons, so none of them is this key.
    pub(crate) fn overrides(&self, prefix: &str) -> StoredOverrides<'_> {
        StoredOverrides { redis: self, key: format!("{prefix}:!overrides") }
    }
}

impl StoredOverrides<'_> {
    /// Names what is stored: it changes with every change.
    pub(crate) async fn version(&self) -> Result<Option<String>, BackendError> {
        self.query(cmd("HGET").arg(&self.key).arg(VERSION)).await
    }

    pub(crate) async fn has(&self, name: &str) -> Result<bool, BackendError> {
        let rules: Option<Vec<u8>> = self.query(cmd("HGET").arg(&self.key).arg(name)).await?;
        Ok(rules.is_some())
    }

    pub(crate) async fn len(&self) -> Result<usize, BackendError> {
        self.query(cmd("HLEN").arg(&self.key)).await
    }

    /// Returns all rules by their names, unless there are more than `most`.
    pub(crate) async fn all(&self, most: usize) -> Result<Option<Vec<(String, String)>>, BackendError> {
        if self.len().await? > most + 1 {
            return Ok(None);
        }
        let mut entries: HashMap<Vec<u8>, Vec<u8>> = self.query(cmd("HGETALL").arg(&self.key)).await?;
        entries.remove(VERSION.as_bytes());
        // Text of another encoding is as unreadable as any other that is not ours.
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Some(entries.into_iter().map(|(name, rules)| (text(name), text(rules))).collect()))
    }

    /// Stores one, or removes it; with a new version, as nobody else would see the change without.
    pub(crate) async fn put(&self, name: &str, rules: Option<&str>) -> Result<(), BackendError> {
        let version = format!("{:016x}", fastrand::u64(..));
        let mut change = pipe();
        change.atomic().hset(&self.key, VERSION, version).ignore();
        match rules {
            Some(rules) => change.hset(&self.key, name, rules).ignore(),
            None => change.hdel(&self.key, name).ignore(),
        };
        let until = self.redis.until()?;
        self.redis.server.answer(until, async |connection| change.query_async(connection).await).await
    }

    async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, BackendError> {
        self.redis.server.query(command, self.redis.until()?).await
    }
}
