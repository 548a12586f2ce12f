//! Reading the registry.

use ::redis::cmd;

use super::StoredPolicies;
use crate::error::BackendError;
use crate::store::stored::MOST_POLICIES;

/// How many policies are read at once.
const COUNT: usize = 64;

/// Fields and their values.
type Found = Vec<(Vec<u8>, Vec<u8>)>;

/// A policy as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredPolicy {
    /// The name as it stands in keys.
    pub(crate) field: String,
    pub(crate) text: String,
}

impl StoredPolicies<'_> {
    /// Returns all policies. One that is registered meanwhile may be among them twice.
    ///
    /// # Errors
    ///
    /// The server does not answer, or there are more policies than any process writes.
    pub(crate) async fn all(&self) -> Result<Vec<StoredPolicy>, BackendError> {
        let number: usize = self.redis.query(&self.key, cmd("HLEN").arg(&self.key)).await?;
        if number > MOST_POLICIES {
            return Err(BackendError::new(format!(
                "`{}` has {number} fields, more than this library writes; delete it, and it is written anew",
                self.key
            )));
        }
        let mut all = Vec::with_capacity(number);
        let mut cursor = "0".to_owned();
        loop {
            let mut command = cmd("HSCAN");
            command.arg(&self.key).arg(&cursor).arg("COUNT").arg(COUNT);
            let (next, found): (String, Found) = self.redis.query(&self.key, &command).await?;
            // Bytes that are no UTF-8 are as unreadable as any other text that is not ours.
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            all.extend(found.into_iter().map(|(field, bytes)| StoredPolicy { field: text(field), text: text(bytes) }));
            if next == "0" {
                return Ok(all);
            }
            cursor = next;
        }
    }
}
