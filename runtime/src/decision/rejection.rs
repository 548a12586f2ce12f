//! What the caller of a limited function gets instead of its result.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::denial::{Denial, LimitingRule};
use super::kind::RejectionKind;
use crate::error::BackendError;

/// Why a limited function did not run.
///
/// Its text reads like a sentence that an end user may be shown: it names no policy and no subject. A
/// [message](Self::with_message) of your own takes its place.
#[derive(Clone)]
pub struct Rejection {
    reason: Reason,
    message: Option<Arc<str>>,
}

/// Leaves out the message, which may show arguments.
impl fmt::Debug for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejection").field("reason", &self.reason).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
enum Reason {
    Denied(Denial),
    Unavailable(Arc<str>, BackendError),
}

impl Rejection {
    pub(crate) fn unavailable(policy: impl Into<Arc<str>>, error: BackendError) -> Self {
        Self { reason: Reason::Unavailable(policy.into(), error), message: None }
    }

    /// Returns the same rejection with a text of your own for the end user.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::Rejection;
    ///
    /// fn in_german(rejection: Rejection) -> Rejection {
    ///     let seconds = rejection.retry_after().map_or(0, |wait| wait.as_secs() + 1);
    ///     rejection.with_message(format!("Bitte in {seconds} Sekunden noch einmal versuchen."))
    /// }
    /// ```
    #[must_use]
    pub fn with_message(mut self, message: impl Into<Arc<str>>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Returns the text that the attribute's `message`, or [`with_message`](Self::with_message), put in place of the usual
    /// one.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// Returns what the rejection means.
    #[must_use]
    pub fn kind(&self) -> RejectionKind {
        match &self.reason {
            Reason::Denied(denial) => denial.kind(),
            Reason::Unavailable(..) => RejectionKind::Unavailable,
        }
    }

    /// Returns the name of the policy that rejected the call.
    #[must_use]
    pub fn policy(&self) -> &str {
        match &self.reason {
            Reason::Denied(denial) => denial.policy().name(),
            Reason::Unavailable(policy, _) => policy,
        }
    }

    /// Returns the rule that denied the call, unless the backend was unavailable.
    #[must_use]
    pub fn rule(&self) -> Option<LimitingRule<'_>> {
        match &self.reason {
            Reason::Denied(denial) => denial.rule(),
            Reason::Unavailable(..) => None,
        }
    }

    /// Returns how long to wait until the same call would be admitted, other calls aside.
    ///
    /// `None` says that this is not known (the backend was unavailable), or that the call can never be admitted.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.reason {
            Reason::Denied(denial) => denial.retry_after(),
            Reason::Unavailable(..) => None,
        }
    }
}

impl From<Denial> for Rejection {
    fn from(denial: Denial) -> Self {
        Self { reason: Reason::Denied(denial), message: None }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.message(), &self.reason) {
            (Some(message), _) => f.write_str(message),
            (None, Reason::Denied(denial)) => denial.fmt(f),
            (None, Reason::Unavailable(..)) => {
                f.write_str("the rate limit cannot be checked right now; try again later")
            }
        }
    }
}

impl std::error::Error for Rejection {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.reason {
            Reason::Denied(_) => None,
            Reason::Unavailable(_, error) => Some(error),
        }
    }
}

/// A type that can carry a [`Rejection`] back to the caller of a limited function.
///
/// Every `Result<T, E>` is one when `E: From<Rejection>`, `Rejection` itself included.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot carry a rejection back to the caller",
    label = "a limited function returns a type that is `FromRejection`",
    note = "return `Result<T, E>` with `impl From<tallygate::Rejection> for E`",
    note = "or say in the attribute how it is made of a rejection: `reject = |rejection| …`",
    note = "or, if `{Self}` is a type of your own, `impl tallygate::FromRejection` for it"
)]
pub trait FromRejection {
    /// Turns a rejection into the value that the limited function returns.
    fn from_rejection(rejection: Rejection) -> Self;
}

// Of a `Result` that is none, the notes above say more than that its error lacks a `From`.
#[diagnostic::do_not_recommend]
impl<T, E: From<Rejection>> FromRejection for Result<T, E> {
    fn from_rejection(rejection: Rejection) -> Self {
        Err(E::from(rejection))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;
    use tallygate_rules::Rule;

    fn denial(rule: Rule, retry_after: Option<Duration>) -> Rejection {
        let policy = Policy::builder("sms").rule(rule.clone().with_count(1)).build().unwrap().with_rules(&[rule]);
        Denial::new(policy, Some(0), retry_after, Vec::new()).into()
    }

    #[test]
    fn a_rejection_reads_like_a_sentence_to_show() {
        let minute = Duration::from_secs(60);
        let limited = denial(Rule::sliding_window(1, minute), Some(Duration::from_micros(41_000_001)));
        assert_eq!(limited.to_string(), "too many requests: at most 1 per 1m; try again in 42s");
        let never = denial(Rule::sliding_window(1, minute), None);
        assert_eq!(never.to_string(), "too many requests: at most 1 per 1m; this request alone exceeds it");
        let closed = denial(Rule::sliding_window(0, minute), None);
        assert_eq!(closed.to_string(), "closed: no requests are admitted for now");
        let again = denial(Rule::duplicate(Duration::from_secs(5)), Some(Duration::from_secs(3)));
        assert_eq!(again.to_string(), "duplicate request: the same was made less than 5s ago; try again in 3s");
        assert_eq!(again.kind(), RejectionKind::Duplicate);
    }

    #[test]
    fn a_message_takes_the_place_of_the_text_and_stays_out_of_debug_output() {
        let minute = Duration::from_secs(60);
        let told = denial(Rule::sliding_window(1, minute), Some(minute)).with_message("not now, 138");
        assert_eq!((told.to_string().as_str(), told.message()), ("not now, 138", Some("not now, 138")));
        assert_eq!((told.kind(), told.retry_after()), (RejectionKind::Limited, Some(minute)));
        assert!(!format!("{told:?}").contains("138"));
    }

    #[test]
    fn a_backend_error_is_shown_to_operators_and_not_to_users() {
        let rejection = Rejection::unavailable("sms", BackendError::new("redis at 10.0.0.1: connection refused"));
        assert_eq!(rejection.kind(), RejectionKind::Unavailable);
        assert!(!rejection.to_string().contains("10.0.0.1"));
        assert!(std::error::Error::source(&rejection).unwrap().to_string().contains("10.0.0.1"));
    }
}
