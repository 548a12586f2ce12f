//! What the companion of an annotated function returns: the check of a call.

use std::borrow::Cow;

use super::Call;
use crate::decision::Rejection;
use crate::error::BackendError;
use crate::limiter::{Check, Limiter};
use crate::policy::Policy;
use crate::subject::Subject;

/// Returns the check of a call, which owns all that it needs.
///
/// If the policy is refused, awaiting the check is an error.
pub fn check(
    policy: Result<Cow<'static, Policy>, Rejection>,
    limiter: Cow<'static, Limiter>,
    subject: Subject,
    call: &Call,
) -> Check<'static> {
    match policy {
        Ok(policy) => call.check(limiter, policy, Cow::Owned(subject)),
        Err(refused) => {
            let error = refused.backend_error().cloned();
            let error = error.unwrap_or_else(|| BackendError::new(refused.to_string()));
            Check::without_policy(limiter, refused.policy().to_owned(), error)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::Rule;

    use super::super::{PolicyCell, installed, subject};
    use super::*;

    #[tokio::test]
    async fn a_check_without_a_policy_is_an_error_however_it_is_used() {
        static POLICY: PolicyCell = PolicyCell::named("refused", |rules| rules.rule(Rule::duplicate(Duration::ZERO)));
        let check = || check(POLICY.policy(), installed(), subject(), &Call::new().subject("network", subject()));
        let error = check().await.unwrap_err().to_string();
        assert!(error.starts_with("policy `refused`: rule 0:"), "{error}");
        assert!(check().peek().report().await.is_err());
        assert!(check().wait(Duration::from_millis(1)).await.is_err());
        assert!(check().reset().await.is_err());
        assert!(check().ban(Duration::from_secs(1)).await.is_err());
        assert!(check().unban().await.is_err());
    }
}
