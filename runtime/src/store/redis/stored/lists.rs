//! Lists in Redis: overrides, policies, and denied subjects.

use std::collections::BTreeMap;

use ::redis::{Cmd, FromRedisValue, cmd};
use tallygate_lua as lua;

use super::{denials_key, overrides_key, policies_key};
use crate::bounds::{ALL_OVERRIDES_BYTES, MOST_POLICIES};
#[cfg(feature = "admin")]
use crate::bounds::{DESCRIPTION_BYTES, WORD_BYTES};
use crate::error::BackendError;
use crate::policy::Policy;
use crate::store::decider::OverrideStore;
use crate::store::redis::Redis;
use crate::store::redis::connection::connect::late;
use crate::store::redis::connection::real_time::wait_for_bounded;
use crate::store::redis::script::run::timed;
use crate::store::redis_types::{LONGEST_VERSION, Progress, RegistrationResult, StoredText, new_version};
use crate::system::Instant;

/// The field of the version of the overrides. In a field, no policy's name begins with `!`, so no override has this
/// field.
const VERSION: &str = "!version";

/// How many overrides are read at once, if they are read in several steps.
const OVERRIDES_AT_ONCE: usize = 1_000;

impl OverrideStore for Redis {
    async fn overrides_version(&self) -> Result<Option<String>, BackendError> {
        let version: Option<Vec<u8>> = self.query_overrides(|key| cmd("HGET").arg(key).arg(VERSION).to_owned()).await?;
        // No process writes a longer version.
        let text = |version: Vec<u8>| String::from_utf8_lossy(&version).chars().take(LONGEST_VERSION).collect();
        Ok(version.map(text))
    }

    async fn all_overrides(&self, most: usize) -> Result<Result<Vec<StoredText>, String>, BackendError> {
        let too_many = || Ok(Err(format!("there are more than {most} overrides")));
        let fields: usize = self.query_overrides(|key| cmd("HLEN").arg(key).to_owned()).await?;
        if fields > most + 1 {
            return too_many();
        }
        let all: BTreeMap<_, _> = self.query_overrides(|key| cmd("HGETALL").arg(key).to_owned()).await?;
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

    async fn some_overrides(&self, number: usize) -> Result<Vec<StoredText>, BackendError> {
        let key = overrides_key(&self.setup.prefix);
        let found = self.scan_hash(&key, OVERRIDES_AT_ONCE, number + 1, 2 * ALL_OVERRIDES_BYTES).await?;
        Ok(found.into_iter().filter(is_override).collect())
    }

    async fn change_override(
        &self,
        field: &str,
        text: Option<&str>,
        operator: Option<&str>,
        most: usize,
        expired: Vec<StoredText>,
    ) -> Result<Option<bool>, BackendError> {
        let change = |key: &str| {
            let mut command = cmd("EVAL");
            command.arg(lua::OVERRIDE).arg(1).arg(key);
            command.arg(new_version(operator)).arg(most).arg(field).arg(text.unwrap_or_default());
            for StoredText { field, text } in expired {
                command.arg(field).arg(text);
            }
            command
        };
        let were_there: i64 = self.query_overrides(change).await?;
        Ok((were_there >= 0).then_some(were_there > 0))
    }

    fn override_time_us(&self) -> u64 {
        self.now_us()
    }

    fn ask_override_time(&self) -> impl Future<Output = Result<(), BackendError>> + Send {
        self.refresh_time()
    }

    async fn wait_for<T: Send>(
        &self,
        policy: &Policy,
        asking: impl Future<Output = Result<T, BackendError>> + Send,
    ) -> Result<(Result<T, BackendError>, Instant), BackendError> {
        let until = self.until_for(policy)?;
        let asked = wait_for_bounded(until, asking).await;
        Ok((asked.unwrap_or_else(|| Err(late())), until))
    }
}

impl Redis {
    async fn query_overrides<T: FromRedisValue>(&self, command: impl FnOnce(&str) -> Cmd) -> Result<T, BackendError> {
        let key = overrides_key(&self.setup.prefix);
        self.query(&key, &command(&key)).await
    }
}

/// Whether this field of the hash is an override. The version is none.
fn is_override(stored: &StoredText) -> bool {
    stored.field != VERSION
}

/// After how many seconds a policy is removed that is not registered again: a week.
const STAY_SECONDS: u64 = 7 * 86_400;

/// How many policies are read at once.
#[cfg(feature = "admin")]
const POLICIES_AT_ONCE: usize = 64;

pub(crate) struct StoredPolicies<'a> {
    redis: &'a Redis,
    key: String,
}

impl Redis {
    pub(crate) fn policies(&self) -> StoredPolicies<'_> {
        StoredPolicies { redis: self, key: policies_key(&self.setup.prefix) }
    }
}

impl StoredPolicies<'_> {
    /// How many connections were made to the server that has the registry; 0 if unknown. After a new connection, the
    /// server may have lost the registry.
    pub(crate) fn connections(&self) -> u64 {
        self.redis.connections(&self.key)
    }

    /// Registers policies, each with its name, as in keys, and its description. Looks for policies that nobody
    /// registers any more.
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

    /// Returns all policies, each in the field of its name, as in keys. One that is registered meanwhile may come
    /// twice.
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
        // While the registry changes, a policy may be returned twice.
        let most_bytes = 2 * MOST_POLICIES * (DESCRIPTION_BYTES + WORD_BYTES);
        self.redis.scan_hash(&self.key, POLICIES_AT_ONCE, usize::MAX, most_bytes).await
    }
}

/// The most subjects for a policy and an hour. If there are more, those with the fewest denials are removed.
const MOST_DENIED: usize = 1_000;

/// The most subjects in one call of the script, because the server does nothing else meanwhile.
const DENIED_AT_ONCE: usize = 250;

/// How long a set is kept after the last addition: as long as it may be read.
const DENIED_KEPT_MS: u64 = 2 * 3_600_000;

pub(crate) struct StoredDenials<'a> {
    redis: &'a Redis,
    prefix: &'a str,
}

impl Redis {
    pub(crate) fn denials(&self) -> StoredDenials<'_> {
        StoredDenials { redis: self, prefix: &self.setup.prefix }
    }
}

impl StoredDenials<'_> {
    /// Adds denials of subjects. Takes from `denials` what it sends.
    ///
    /// If it is certain that they were not added, they are put back. Otherwise they might count twice.
    ///
    /// # Errors
    ///
    /// The server does not answer.
    pub(crate) async fn add(
        &self,
        policy: &str,
        period: u64,
        denials: &mut Vec<(String, u64)>,
    ) -> Result<(), BackendError> {
        let key = denials_key(self.prefix, policy, period);
        while !denials.is_empty() {
            let sent = denials.split_off(denials.len().saturating_sub(DENIED_AT_ONCE));
            if let Err(error) = self.add_at_once(&key, &sent).await {
                if error.is_refusal() {
                    denials.extend(sent);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    async fn add_at_once(&self, key: &str, denials: &[(String, u64)]) -> Result<(), BackendError> {
        let mut command = cmd("EVAL");
        command.arg(lua::DENIED).arg(1).arg(key).arg(DENIED_KEPT_MS).arg(MOST_DENIED);
        for (subject, denials) in denials {
            command.arg(denials).arg(subject);
        }
        self.redis.query(key, &command).await
    }

    /// Returns the subjects with their denials.
    pub(crate) async fn of(&self, policy: &str, period: u64) -> Result<Vec<(String, u64)>, BackendError> {
        let key = denials_key(self.prefix, policy, period);
        let command = cmd("ZREVRANGE").arg(&key).arg(0).arg(MOST_DENIED - 1).arg("WITHSCORES").to_owned();
        let found: Vec<(Vec<u8>, f64)> = self.redis.query(&key, &command).await?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(found.into_iter().take(MOST_DENIED).map(|(subject, score)| (text(subject), whole(score))).collect())
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it saturates, and only whole numbers were added"
)]
fn whole(score: f64) -> u64 {
    score as u64
}
