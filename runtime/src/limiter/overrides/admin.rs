//! Setting and clearing overrides.

use tallygate_rules::{Rule, validate_override};

use super::{Field, Override};
use crate::error::Error;
use crate::limiter::Limiter;
use crate::observe::log;
use crate::store::Store;
use crate::subject::{Subject, escape_name};

#[cfg_attr(not(feature = "redis"), allow(clippy::unused_async, reason = "without Redis there is none to wait for"))]
impl Limiter {
    /// Lets these rules decide all calls of the policies of that name, instead of their own, until
    /// [`clear_override`](Self::clear_override).
    ///
    /// Tallies in Redis keep the override there: every process takes it up within about a second, two when it is idle,
    /// and it survives restarts. In memory it holds for this limiter.
    ///
    /// What has been counted stays counted, as far as the layout of the tallies is the same: counts change freely; other
    /// windows or algorithms start new tallies. A count of 0 closes the door. A rule for duplicates that is not among the
    /// new ones is gone meanwhile, too. Rules on other subjects of a call, and a ban, stay in force; a policy that has
    /// rules on other subjects alone is not overridden.
    ///
    /// # Errors
    ///
    /// Any mistake in the rules that the attribute would refuse when compiling, but for a count of 0; or Redis does not
    /// answer, and then the override may or may not be in force.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let (limiter, minute) = (Limiter::in_memory(), Duration::from_secs(60));
    /// let policy = Policy::builder("sms.send").rule(Rule::sliding_window(1, minute)).build()?;
    /// limiter.override_rules("sms.send", [Rule::sliding_window(0, minute)]).await?;
    /// assert!(!limiter.check(&policy, &Subject::of("138")).await?.is_allowed());
    ///
    /// limiter.clear_override("sms.send").await?;
    /// assert!(limiter.check(&policy, &Subject::of("138")).await?.is_allowed());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn override_rules(&self, policy: &str, rules: impl IntoIterator<Item: Into<Rule>>) -> Result<(), Error> {
        self.put_override(policy, None, rules.into_iter().map(Into::into).collect()).await
    }

    /// Lets these rules decide the calls of one subject, instead of those of the policy or of its override.
    ///
    /// The subject is the one that the calls are checked for: a `key` of `"user:{id}"` makes subjects like
    /// `Subject::of("user").and(7)`.
    ///
    /// # Errors
    ///
    /// As of [`override_rules`](Self::override_rules); also if there are 10,000 overrides already.
    pub async fn override_rules_for(
        &self,
        policy: &str,
        subject: &Subject,
        rules: impl IntoIterator<Item: Into<Rule>>,
    ) -> Result<(), Error> {
        self.put_override(policy, Some(subject), rules.into_iter().map(Into::into).collect()).await
    }

    /// Lets the policies of that name decide by their own rules again. Overrides for single subjects stay.
    ///
    /// # Errors
    ///
    /// Redis does not answer, and then the override may or may not be in force.
    pub async fn clear_override(&self, policy: &str) -> Result<(), Error> {
        self.remove_override(policy, None).await
    }

    /// Lets a subject be decided by the rules of everybody again.
    ///
    /// # Errors
    ///
    /// As of [`clear_override`](Self::clear_override).
    pub async fn clear_override_for(&self, policy: &str, subject: &Subject) -> Result<(), Error> {
        self.remove_override(policy, Some(subject)).await
    }

    async fn put_override(&self, policy: &str, subject: Option<&Subject>, rules: Vec<Rule>) -> Result<(), Error> {
        validate_override(&rules).map_err(|mistakes| Error::rules(policy, &mistakes))?;
        let field = Field::new(policy, subject);
        match &self.core.store {
            Store::Memory(_) => {
                self.core.overrides.put(field, Override::new(rules))?;
                log::overridden(&escape_name(policy));
                Ok(())
            }
            #[cfg(feature = "redis")]
            Store::Redis(redis) => self.core.store_override(redis, &field, Some(&rules)).await,
        }
    }

    async fn remove_override(&self, policy: &str, subject: Option<&Subject>) -> Result<(), Error> {
        let field = Field::new(policy, subject);
        match &self.core.store {
            Store::Memory(_) => {
                self.core.overrides.remove(&field);
                log::overridden(&escape_name(policy));
                Ok(())
            }
            #[cfg(feature = "redis")]
            Store::Redis(redis) => self.core.store_override(redis, &field, None).await,
        }
    }
}
