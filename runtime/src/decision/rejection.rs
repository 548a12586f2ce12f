//! The rejection that the caller of a limited function gets instead of its result.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use tallygate_rules::{RejectionField, amount_in_words, format_duration, unit_in_words};

use super::denial::{Denial, LimitingRule, RejectionKind};
use super::report::RuleStatus;
use crate::error::{BackendError, BackendErrorKind};
use crate::wait::RoundedUp;

/// Why a limited function did not run.
///
/// Its text is a sentence that an end user may be shown: it contains neither the policy nor the subject. A
/// [message](Self::with_message) of your own takes its place.
#[derive(Clone, PartialEq, Eq)]
pub struct Rejection {
    reason: RejectionReason,
}

#[derive(Clone, PartialEq, Eq)]
enum RejectionReason {
    Denied(Denial),
    Unavailable { policy: Arc<str>, error: BackendError, message: Option<Arc<str>> },
}

/// Gives a rejection its message.
pub(crate) type Reword = dyn Fn(Rejection) -> Rejection + Send + Sync;

impl Rejection {
    /// Returns the rejection of a call that the backend did not decide, given the name of its policy.
    ///
    /// Use this and `Rejection::from(denial)` to reject calls that are [checked](crate::Limiter::check) by hand like those
    /// of limited functions.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::{Limiter, Policy, Rejection, Subject};
    ///
    /// async fn admit(limiter: &Limiter, policy: &Policy, user: &Subject) -> Result<(), Rejection> {
    ///     let decision = limiter.check(policy, user).await;
    ///     decision.map_err(|error| Rejection::unavailable(policy.name(), error))?.into_result()?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn unavailable(policy: impl Into<Arc<str>>, error: BackendError) -> Self {
        Self { reason: RejectionReason::Unavailable { policy: policy.into(), error, message: None } }
    }

    /// Returns the same rejection with a text of your own for the end user.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::Rejection;
    ///
    /// fn in_german(rejection: Rejection) -> Rejection {
    ///     let message = match rejection.retry_after() {
    ///         Some(wait) => format!("Bitte in {} Sekunden noch einmal versuchen.", wait.as_secs() + 1),
    ///         None => "Zurzeit nicht möglich.".to_owned(),
    ///     };
    ///     rejection.with_message(message)
    /// }
    /// ```
    #[must_use]
    pub fn with_message(mut self, message: impl Into<Arc<str>>) -> Self {
        match &mut self.reason {
            RejectionReason::Denied(denial) => denial.message = Some(message.into()),
            RejectionReason::Unavailable { message: own, .. } => *own = Some(message.into()),
        }
        self
    }

    /// Returns the text that replaces the usual one, set by the attribute's `message`, by
    /// [`Check::messages`](crate::Check::messages) or by [`with_message`](Self::with_message).
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        match &self.reason {
            RejectionReason::Denied(denial) => denial.message.as_deref(),
            RejectionReason::Unavailable { message, .. } => message.as_deref(),
        }
    }

    /// Returns the kind of the rejection.
    #[must_use]
    pub fn kind(&self) -> RejectionKind {
        match &self.reason {
            RejectionReason::Denied(denial) => denial.kind(),
            RejectionReason::Unavailable { error, .. } if error.kind() == BackendErrorKind::Unidentified => {
                RejectionKind::Unidentified
            }
            RejectionReason::Unavailable { .. } => RejectionKind::Unavailable,
        }
    }

    /// Returns the denial, unless the call was not decided.
    #[must_use]
    pub fn denial(&self) -> Option<&Denial> {
        match &self.reason {
            RejectionReason::Denied(denial) => Some(denial),
            RejectionReason::Unavailable { .. } => None,
        }
    }

    /// Returns the name of the policy that rejected the call.
    #[must_use]
    pub fn policy(&self) -> &str {
        match &self.reason {
            RejectionReason::Denied(denial) => denial.policy().name(),
            RejectionReason::Unavailable { policy, .. } => policy,
        }
    }

    /// Returns the rule that denied the call; `None` for a ban or a pause, and if the call was not decided.
    #[must_use]
    pub fn rule(&self) -> Option<LimitingRule<'_>> {
        self.denial()?.rule()
    }

    /// Returns the position of the policy's own rule that denied the call, or `None` if no rule did. A rule of an override
    /// that replaces no own rule gets a position that none has, so it gets no message of theirs.
    pub(crate) fn denying_rule(&self) -> Option<usize> {
        self.rule().map(|limiting| limiting.replaced.unwrap_or(usize::MAX))
    }

    /// Returns where every rule stands, if [`Check::report`](crate::Check::report) or the context of the call asked for it, as
    /// a web layer with `on_success(true)` does; else nothing.
    #[must_use]
    pub fn report(&self) -> &[RuleStatus] {
        self.denial().map_or(&[], Denial::report)
    }

    /// Whether the program has made the call in a way that cannot be decided.
    pub(crate) fn is_misuse(&self) -> bool {
        self.backend_error().is_some_and(|error| error.kind() == BackendErrorKind::Misuse)
    }

    /// Returns why the call could not be decided; `None` if it was denied.
    pub(crate) fn backend_error(&self) -> Option<&BackendError> {
        match &self.reason {
            RejectionReason::Denied(_) => None,
            RejectionReason::Unavailable { error, .. } => Some(error),
        }
    }

    /// Returns how long to wait until the same call would be admitted, if no other calls come in between. It is the
    /// longest wait of all rules that deny the call and of a ban. For a pause, it is the time until that ends.
    ///
    /// `None` means that there is no such time: the call can never be admitted, or the backend was unavailable. A response
    /// then has no `Retry-After`; zero would invite the next attempt at once.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.denial()?.retry_after()
    }
}

impl From<Denial> for Rejection {
    fn from(denial: Denial) -> Self {
        Self { reason: RejectionReason::Denied(denial) }
    }
}

impl Denial {
    /// Returns the denial with the message that `reword` gives its rejection.
    pub(crate) fn reworded(self, reword: &Reword) -> Self {
        match reword(self.clone().into()).reason {
            RejectionReason::Denied(reworded) => reworded,
            RejectionReason::Unavailable { .. } => self,
        }
    }
}

impl From<BackendError> for Rejection {
    fn from(error: BackendError) -> Self {
        Self::unavailable("", error)
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (error, message) = match &self.reason {
            RejectionReason::Denied(denial) => return denial.fmt(f),
            RejectionReason::Unavailable { error, message, .. } => (error, message),
        };
        f.write_str(match (message, error.kind()) {
            (Some(message), _) => message,
            (None, BackendErrorKind::Misuse) => "the rate limit cannot be checked because of a mistake in the service",
            (None, BackendErrorKind::Unidentified) => {
                "the request lacks what its rate limit counts by, such as who has signed in"
            }
            (None, _) => "the rate limit cannot be checked right now; try again later",
        })
    }
}

/// Leaves out the message, which may show arguments.
impl fmt::Debug for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rejection = f.debug_struct("Rejection");
        rejection.field("policy", &self.policy()).field("kind", &self.kind());
        match &self.reason {
            RejectionReason::Denied(denial) => {
                rejection.field("rule", &denial.rule()).field("retry_after", &denial.retry_after())
            }
            RejectionReason::Unavailable { error, .. } => rejection.field("error", error),
        };
        rejection.finish_non_exhaustive()
    }
}

impl std::error::Error for Rejection {
    /// Returns the [`BackendError`] of a call that the backend did not decide.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.backend_error().map(|error| error as _)
    }
}

/// Adds a value of a rejection to a message. A ban and a pause have no rule, so they show nothing of one.
pub fn push_field(message: &mut String, field: RejectionField, rejection: &Rejection) {
    match (field, rejection.rule()) {
        (RejectionField::RetryAfter, _) => push_retry_after(message, rejection),
        (_, None) => {}
        // In the words of the usual sentence, which `Denial` writes.
        (RejectionField::Count, Some(limiting)) => {
            message.push_str(&amount_in_words(limiting.rule(), limiting.count()));
        }
        (RejectionField::Unit, Some(limiting)) => message.push_str(&unit_in_words(limiting.rule())),
        (RejectionField::Per, Some(limiting)) => push_window(message, &limiting),
        (RejectionField::Rule, Some(limiting)) => push_name(message, &limiting),
    }
}

/// Adds the time to wait: `42s`, or `never` if waiting does not help.
fn push_retry_after(message: &mut String, rejection: &Rejection) {
    let _ = match rejection.retry_after() {
        Some(wait) => write!(message, "{}", RoundedUp(wait)),
        None => message.write_str("never"),
    };
}

/// Adds the window: `1m`, or the schedule. For a concurrency limit, it is the length of a lease.
fn push_window(message: &mut String, limiting: &LimitingRule<'_>) {
    #[cfg(feature = "cron")]
    if let Some(schedule) = limiting.rule().schedule() {
        let _ = write!(message, "{schedule}");
    }
    let duration = limiting.per().or_else(|| limiting.rule().lease());
    message.push_str(&duration.map(format_duration).unwrap_or_default());
}

/// Adds the name of the rule, or the rule in words if it has none.
fn push_name(message: &mut String, limiting: &LimitingRule<'_>) {
    let _ = match limiting.name() {
        Some(name) => message.write_str(name),
        None => write!(message, "{}", limiting.rule()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Call, CallOptions};
    use crate::decision::{DecidedBy, DenialCause, Wait};
    use crate::micros;
    use crate::policy::Policy;
    use tallygate_rules::Rule;

    fn denial(rule: Rule, retry_after: Option<Duration>) -> Rejection {
        let count = rule.count();
        let policy = Policy::builder("sms").rule(rule.with_count(1)).build().unwrap().with_counts([count]);
        let retry_after = retry_after.map_or(Wait::NEVER, |wait| Wait::us(micros::from_duration(wait)));
        Denial::new(Call::new(&policy, &[], CallOptions::PLAIN), DenialCause::rule(0), retry_after, DecidedBy::Backend)
            .into()
    }

    #[test]
    fn the_text_of_a_rejection_is_a_sentence_for_end_users() {
        let minute = Duration::from_secs(60);
        let limited = denial(Rule::sliding_window(1, minute), Some(Duration::from_micros(41_000_001)));
        assert_eq!(limited.to_string(), "too many requests: at most 1 per 1m; try again in 42s");
        let never = denial(Rule::sliding_window(1, minute), None);
        assert_eq!(never.to_string(), "too many requests: at most 1 per 1m; waiting does not help");
        let closed = denial(Rule::sliding_window(0, minute), None);
        assert_eq!(closed.to_string(), "closed: no requests are admitted for now");
        let tokens = denial(Rule::sliding_window(20_000, minute).counting("input_tokens"), Some(minute));
        assert_eq!(tokens.to_string(), "too many input tokens: at most 20,000 per 1m; try again in 1m");
        assert_eq!(tokens.rule().and_then(|rule| rule.unit()), Some("input_tokens"));
        let closed = denial(Rule::sliding_window(0, minute).counting("tokens"), None);
        assert_eq!(closed.to_string(), "closed: no tokens are admitted for now");
        let again = denial(Rule::duplicate(Duration::from_secs(5)), Some(Duration::from_secs(3)));
        assert_eq!(again.kind(), RejectionKind::Duplicate);
    }

    #[test]
    fn the_text_of_a_duplicate_agrees_with_its_wait() {
        let text = |wait: Option<u64>| {
            let wait = wait.map(Duration::from_secs);
            denial(Rule::duplicate(Duration::from_secs(5)), wait).to_string()
        };
        let duplicate = "duplicate request: the same one was admitted less than 5s ago";
        assert_eq!(text(Some(5)), format!("{duplicate}; try again in 5s"));
        assert_eq!(text(Some(60)), format!("{duplicate}, and another limit is reached; try again in 1m"));
        assert_eq!(text(None), format!("{duplicate}, and another limit is reached; waiting does not help"));
    }

    #[test]
    fn debug_output_fits_on_two_lines() {
        let day = Rule::sliding_window(10, Duration::from_secs(86_400)).named("daily");
        let rejection = denial(day, Some(Duration::from_micros(41_000_001)));
        let shown = "policy: \"sms\", kind: Limited, rule: Some(#0: 10 per 1d as daily), retry_after: Some(41.000001s)";
        assert_eq!(format!("{rejection:?}"), format!("Rejection {{ {shown}, .. }}"));
        let unavailable = Rejection::unavailable("sms", BackendError::new("redis: no answer within the deadline"));
        let shown = "policy: \"sms\", kind: Unavailable, error: redis: no answer within the deadline";
        assert_eq!(format!("{unavailable:?}"), format!("Rejection {{ {shown}, .. }}"));
    }

    #[test]
    fn an_error_enum_around_a_rejection_can_be_compared() {
        #[derive(Debug, PartialEq, Eq)]
        enum ApiError {
            Rejected(Rejection),
        }
        let minute = Duration::from_secs(60);
        let rejected = |wait| ApiError::Rejected(denial(Rule::sliding_window(1, minute), Some(wait)));
        assert_eq!(rejected(minute), rejected(minute));
        assert_ne!(rejected(minute), rejected(2 * minute));
    }

    #[test]
    fn a_message_takes_the_place_of_the_text_and_stays_out_of_debug_output() {
        let minute = Duration::from_secs(60);
        let rejection = denial(Rule::sliding_window(1, minute), Some(minute)).with_message("not now, 138");
        assert_eq!(rejection.to_string(), "not now, 138");
        assert_eq!(rejection.message(), Some("not now, 138"));
        assert_eq!(rejection.denial().map(ToString::to_string).as_deref(), Some("not now, 138"));
        assert_eq!((rejection.kind(), rejection.retry_after()), (RejectionKind::Limited, Some(minute)));
        assert!(!format!("{rejection:?}").contains("138"));
    }

    #[test]
    fn a_backend_error_is_shown_to_operators_and_not_to_users() {
        let rejection = Rejection::unavailable("sms", BackendError::new("redis at 10.0.0.1: connection refused"));
        assert_eq!(rejection.kind(), RejectionKind::Unavailable);
        assert!(!rejection.to_string().contains("10.0.0.1"));
        assert!(std::error::Error::source(&rejection).unwrap().to_string().contains("10.0.0.1"));
    }
}
