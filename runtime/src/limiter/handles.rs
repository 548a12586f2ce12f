//! Handles on limits that are written elsewhere: their policies by name, and the subjects of their templates.

use crate::limiter::Limiter;
use crate::policy::{Policy, registry};
use crate::subject::SubjectBuilder;

impl Limiter {
    /// Returns the policy of that name, if this process knows one.
    ///
    /// Known are the policies of annotated functions, from their first call on, and those that were
    /// [built](crate::PolicyBuilder::build) and are still in use, also by a limit around a router. Of several with one name it is the one that was built
    /// last; all of them share their tallies anyway.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tallygate::{Limiter, Rejection, Subject, rate_limit};
    ///
    /// #[rate_limit(name = "sms.send", key = "sms:{phone}", rule(count = 1, per = "60s"))]
    /// async fn send_code(phone: &str) -> Result<(), Rejection> {
    ///     Ok(())
    /// }
    ///
    /// send_code("138").await?;
    /// let policy = Limiter::policy("sms.send").ok_or("it was called")?;
    /// let decision = Limiter::installed().peek(&policy, &Subject::of("sms").and("138")).await?;
    /// assert_eq!(decision.report()[0].remaining(), 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn policy(name: &str) -> Option<Policy> {
        registry::find(name)
    }

    /// Returns all policies that this process knows, as [`policy`](Self::policy) does: ordered by their names, and those
    /// of one name in the order in which they were built.
    #[must_use = "nothing is done but to find them"]
    pub fn policies() -> impl Iterator<Item = Policy> {
        registry::all().into_iter()
    }

    /// Starts a subject that renders exactly as a template of the attribute does, `hash` and `subnet` included.
    ///
    /// | template | subject |
    /// | --- | --- |
    /// | `sms:{phone}` | `.text("sms:").value(phone)` |
    /// | `{ip:subnet}/{path}` | `.value(ip).subnet().text("/").value(path)` |
    /// | `mail:{email:trim:lower:hash}` | `.text("mail:").value(email).trim().lower().hash()` |
    ///
    /// The filter `hash` needs the secret of the limiter, so the limiter has to be the function's. Where values are only
    /// separated by colons, [`Subject::of`](crate::Subject::of) is shorter.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::{Limiter, Subject};
    ///
    /// let limiter = Limiter::in_memory();
    /// let subject = limiter.subject().text("ip:").value("2001:db8::7").subnet().build();
    /// assert_eq!(subject, Subject::of("ip").and("2001:db8::/64"));
    /// ```
    pub fn subject(&self) -> SubjectBuilder<'_> {
        SubjectBuilder::new(self.secret())
    }
}
