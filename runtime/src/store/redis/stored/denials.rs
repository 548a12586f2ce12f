//! Denied subjects in Redis: a sorted set for each policy and hour.

use ::redis::cmd;
use tallygate_lua as lua;

use super::denials_key;
use crate::error::BackendError;
use crate::store::redis::Redis;

/// The most subjects of a policy and an hour. If there are more, those with the fewest denials are removed.
const MOST: usize = 1_000;

/// The most subjects in one call of the script: the server does nothing else meanwhile.
const MOST_AT_ONCE: usize = 250;

/// How long a set is kept after the last addition: as long as it may be read.
const KEPT_MS: u64 = 2 * 3_600_000;

/// The denied subjects of one prefix.
pub(crate) struct StoredDenials<'a> {
    redis: &'a Redis,
    prefix: &'a str,
}

impl Redis {
    /// The denied subjects.
    pub(crate) fn denials(&self) -> StoredDenials<'_> {
        StoredDenials { redis: self, prefix: &self.setup.prefix }
    }
}

impl StoredDenials<'_> {
    /// Adds denials of subjects, and removes from the list what it sends.
    ///
    /// What was sent is put back only if it was certainly not added. Otherwise it might count twice.
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
            let sent = denials.split_off(denials.len().saturating_sub(MOST_AT_ONCE));
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
        command.arg(lua::DENIED).arg(1).arg(key).arg(KEPT_MS).arg(MOST);
        for (subject, denials) in denials {
            command.arg(denials).arg(subject);
        }
        self.redis.query(key, &command).await
    }

    /// Returns the subjects with their denials.
    pub(crate) async fn of(&self, policy: &str, period: u64) -> Result<Vec<(String, u64)>, BackendError> {
        let key = denials_key(self.prefix, policy, period);
        let command = cmd("ZREVRANGE").arg(&key).arg(0).arg(MOST - 1).arg("WITHSCORES").to_owned();
        let found: Vec<(Vec<u8>, f64)> = self.redis.query(&key, &command).await?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(found.into_iter().take(MOST).map(|(subject, score)| (text(subject), whole(score))).collect())
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
