//! The only thing that expansions of the attribute call. Nothing here is part of the public interface.

mod call;
mod companion;
mod enter;
mod policy_cell;
mod render;

use std::borrow::Cow;

pub use tallygate_rules::{Ban, Rule, TokenBucket};

pub use self::call::{Call, is_refunded, refund};
pub use self::companion::check;
pub use self::enter::{Enter, enter, enter_with};
pub use self::policy_cell::{PolicyCell, Rules};
pub use self::render::{
    Value, hash, lower, push_count, push_literal, push_per, push_retry_after, push_rule, push_shown, push_string,
    push_text, push_value, subnet, trim,
};
use crate::decision::{Rejection, RejectionKind};
use crate::limiter::Limiter;
use crate::policy::Policy;
use crate::subject::Subject;

/// Makes the rule of a cron expression in a time zone.
///
/// The attribute has read the schedule with the same code. If it is refused all the same, which is a mistake of ours, the
/// rule is one that no policy may have: it closes the function rather than leaving it unlimited.
#[cfg(feature = "cron")]
#[must_use]
pub fn cron(count: u64, expression: &str, zone: &str) -> Rule {
    let schedule = tallygate_rules::Schedule::parse(expression, zone);
    schedule.map_or(Rule::duplicate(std::time::Duration::ZERO), |schedule| Rule::cron(count, schedule))
}

/// Returns the policy with the counts of this call.
///
/// # Errors
///
/// Passes on that there is no policy.
pub fn with_counts<const N: usize>(
    policy: Result<Cow<'static, Policy>, Rejection>,
    counts: [u64; N],
) -> Result<Cow<'static, Policy>, Rejection> {
    policy.map(|policy| Cow::Owned(policy.with_counts(counts)))
}

/// Starts the subject of a call.
#[inline]
#[must_use]
pub fn subject() -> Subject {
    Subject::everyone()
}

/// Returns the policy that the user named, as an owned value.
///
/// It is the element of an array, because the compiler then underlines it alone when its type is wrong.
///
/// # Errors
///
/// None: that is what the policy of a [`PolicyCell`] may have.
#[allow(clippy::unnecessary_wraps, reason = "it stands where the policy of a site does")]
pub fn named([policy]: [&Policy; 1]) -> Result<Cow<'static, Policy>, Rejection> {
    Ok(Cow::Owned(policy.clone()))
}

/// Returns the limiter that the user named, as an owned value.
///
/// It is the element of an array, because the compiler then underlines it alone when its type is wrong.
#[must_use]
pub fn limiter([named]: [&Limiter; 1]) -> Cow<'static, Limiter> {
    Cow::Owned(named.clone())
}

/// Returns the limiter that is installed at this moment.
#[inline]
#[must_use]
pub fn installed() -> Cow<'static, Limiter> {
    Cow::Borrowed(Limiter::installed())
}

/// Returns the position of the function's own rule that denied the call, or `None` if it was no rule. A rule of an override
/// that stands for none of them has a position that none of them has, so that it gets no message of theirs.
#[must_use]
pub fn denying_rule(rejection: &Rejection) -> Option<usize> {
    rejection.rule().map(|rule| rule.replaced().unwrap_or(usize::MAX))
}

/// Returns whether it was a ban that rejected the call.
#[must_use]
pub fn is_ban(rejection: &Rejection) -> bool {
    rejection.kind() == RejectionKind::Banned
}

/// Makes what the function returns of the rejection, by what the user named.
pub fn reject<T>(rejection: Rejection, reject: impl FnOnce(Rejection) -> T) -> T {
    reject(rejection)
}

#[cfg(all(test, feature = "cron"))]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_that_is_refused_makes_a_rule_that_no_policy_may_have() {
        for (expression, zone) in [("0 0 6 * *", "UTC"), ("0 0 6 * * *", "Mars/Olympus")] {
            assert!(Policy::builder("p").rule(cron(1, expression, zone)).build().is_err());
        }
        assert!(Policy::builder("p").rule(cron(1, "0 0 6 * * *", "UTC")).build().is_ok());
    }
}
