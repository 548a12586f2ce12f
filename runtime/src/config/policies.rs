//! The policies of a file.

use std::fmt;
use std::sync::Arc;

use super::change::PolicyChange;
#[cfg(feature = "web")]
use super::request_limit::RequestLimit;
use crate::policy::Policy;

/// The policies of a file: see the [module](crate::config).
///
/// Cloning is cheap. Nothing is in force until they are [applied](crate::Limiter::apply).
#[derive(Clone)]
#[must_use = "nothing is in force until `limiter.apply(&policies)`"]
pub struct Policies {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) names: Vec<String>,
    pub(super) changes: Vec<Arc<PolicyChange>>,
    /// In the order of the file.
    #[cfg(feature = "web")]
    pub(super) requests: Vec<RequestLimit>,
}

impl Policies {
    /// Returns the names of the policies, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.inner.names.iter().map(String::as_str)
    }

    /// Returns the policy of that name as the file alone says it: to simulate it, or to show
    /// it. `None` if the file does not have it, or has no rules of it.
    ///
    /// What the program adds is not known here: its other rules, its ban, its messages. The label of a rule with a `key` of
    /// its own is that key, like `{ip}`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::config::Policies;
    ///
    /// let text = r#"
    /// [policy.search]
    /// rules = ["5 per 1s", { count = 100, per = "1h", key = "{ip}" }]
    /// "#;
    /// let policy = Policies::from_toml(text)?.policy("search").ok_or("it is there")?;
    /// assert_eq!(policy.rules()[1].to_string(), "100 per 1h");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn policy(&self, name: &str) -> Option<Policy> {
        let of_program = self.inner.changes.iter().find(|change| change.name() == name);
        #[cfg(feature = "web")]
        if let Some(limit) = self.inner.requests.iter().find(|limit| limit.policy.name() == name) {
            return Some(limit.policy.clone());
        }
        of_program?.policy()
    }

    /// What the file changes of policies of the program.
    pub(crate) fn changes(&self) -> &[Arc<PolicyChange>] {
        &self.inner.changes
    }

    /// The policies for requests, in the order of the file.
    #[cfg(feature = "web")]
    pub(crate) fn requests(&self) -> &[RequestLimit] {
        &self.inner.requests
    }
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policies").field("names", &self.inner.names).finish_non_exhaustive()
    }
}
