//! Overrides in Redis: a hash of texts by policy and subject, and a version that every change renews.

use std::collections::HashMap;

use ::redis::{Cmd, FromRedisValue, cmd};
use tallygate_lua as lua;

use super::{Redis, reserved_keys};
use crate::error::BackendError;

/// The field of the version. No policy's name begins like it in a field, so no override is mistaken for it.
const VERSION: &str = "!version";

/// The overrides of one prefix.
pub(crate) struct StoredOverrides<'a> {
    redis: &'a Redis,
    key: String,
}

/// An override as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredOverride {
    pub(crate) field: String,
    pub(crate) text: String,
}

impl Redis {
    /// Returns the overrides of that prefix.
    pub(crate) fn overrides(&self, prefix: &str) -> StoredOverrides<'_> {
        StoredOverrides { redis: self, key: reserved_keys::overrides(prefix) }
    }
}

impl StoredOverrides<'_> {
    /// Returns the version, which changes with every change.
    pub(crate) async fn version(&self) -> Result<Option<String>, BackendError> {
        self.query(cmd("HGET").arg(&self.key).arg(VERSION)).await
    }

    pub(crate) async fn has(&self, field: &str) -> Result<bool, BackendError> {
        let text: Option<Vec<u8>> = self.query(cmd("HGET").arg(&self.key).arg(field)).await?;
        Ok(text.is_some())
    }

    /// Returns all overrides, unless there are more than `most`.
    pub(crate) async fn all(&self, most: usize) -> Result<Option<Vec<StoredOverride>>, BackendError> {
        let fields: usize = self.query(cmd("HLEN").arg(&self.key)).await?;
        if fields > most + 1 {
            return Ok(None);
        }
        let mut texts: HashMap<Vec<u8>, Vec<u8>> = self.query(cmd("HGETALL").arg(&self.key)).await?;
        texts.remove(VERSION.as_bytes());
        // Bytes that are no UTF-8 are as unreadable as any other text that is not ours.
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let stored = texts.into_iter().map(|(field, bytes)| StoredOverride { field: text(field), text: text(bytes) });
        Ok(Some(stored.collect()))
    }

    /// Stores a text in a field, or removes the field, and removes those that have expired. Returns whether the field was
    /// there.
    pub(crate) async fn change(
        &self,
        field: &str,
        text: Option<&str>,
        expired: impl IntoIterator<Item = StoredOverride>,
    ) -> Result<bool, BackendError> {
        let version = format!("{:016x}", fastrand::u64(..));
        let mut command = cmd("EVAL");
        command.arg(lua::OVERRIDE).arg(1).arg(&self.key);
        command.arg(version).arg(field).arg(text.unwrap_or_default());
        for StoredOverride { field, text } in expired {
            command.arg(field).arg(text);
        }
        self.query(&command).await
    }

    async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, BackendError> {
        self.redis.query(&self.key, command).await
    }
}
