//! The only thing that expansions of the attribute call. Nothing here is part of the public interface.

mod call;
mod entering;
mod placeholder;

use std::borrow::Cow;

use once_cell::sync::OnceCell;
pub use tallygate_rules::{Ban, Rule, TokenBucket};

pub use self::call::{Call, is_refunded, refund};
pub use self::entering::{Entering, enter, enter_with};
pub use self::placeholder::{
    Value, hash, lower, push_count, push_literal, push_per, push_retry_after, push_rule, push_shown, push_string,
    push_text, push_value, subnet, trim,
};
use crate::{Error, Kind, Limiter, Outage, Policy, PolicyBuilder, Rejection, Subject};

/// The policy of one annotated function, built at its first call.
#[derive(Debug)]
pub struct Site(OnceCell<Result<Policy, Rejection>>);

impl Site {
    /// Returns a site whose policy is yet to be built.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "a static needs a const constructor")]
    pub const fn new() -> Self {
        Self(OnceCell::new())
    }

    /// Returns the policy of that name, which is built at the first call.
    ///
    /// # Errors
    ///
    /// The policy is refused. The attribute has validated it with the same code, so this is for a mistake of ours: it
    /// closes the function rather than leaving it unlimited.
    #[inline]
    pub fn named(&'static self, name: &'static str, rules: Rules) -> Result<Cow<'static, Policy>, Rejection> {
        self.built(|| name.to_owned(), rules)
    }

    /// Returns the policy that is named after its function. `marker` is the path of an item of the function's body.
    ///
    /// # Errors
    ///
    /// As for a name that is given.
    #[inline]
    pub fn unnamed(&'static self, marker: &'static str, rules: Rules) -> Result<Cow<'static, Policy>, Rejection> {
        self.built(|| path_of(marker), rules)
    }

    #[inline]
    fn built(&'static self, name: impl FnOnce() -> String, rules: Rules) -> Result<Cow<'static, Policy>, Rejection> {
        if let Some(Ok(policy)) = self.0.get() {
            return Ok(Cow::Borrowed(policy));
        }
        self.build(name, rules)
    }

    #[cold]
    fn build(&'static self, name: impl FnOnce() -> String, rules: Rules) -> Result<Cow<'static, Policy>, Rejection> {
        let built = self.0.get_or_init(|| {
            let name = name();
            let built = rules(Policy::builder(name.clone())).and_then(PolicyBuilder::build);
            built.map_err(|mistake| Rejection::unavailable(name, Outage::new(mistake.to_string())))
        });
        built.as_ref().map(Cow::Borrowed).map_err(Clone::clone)
    }
}

/// Adds rules to a policy.
type Rules = fn(PolicyBuilder) -> Result<PolicyBuilder, Error>;

/// Returns the path of the function that an item stands in: `crate.module.Type.function`.
fn path_of(item: &str) -> String {
    let path: Vec<_> = item.split("::").filter(|segment| *segment != "{{closure}}").collect();
    let function = path.split_last().map_or(&[][..], |(_item, function)| function);
    function.join(".")
}

/// Makes the rule of a cron expression in a time zone.
///
/// # Errors
///
/// The schedule is refused. The attribute has read it with the same code, so this is for a mistake of ours.
#[cfg(feature = "cron")]
pub fn cron(count: u64, expression: &str, zone: &str) -> Result<Rule, Error> {
    let schedule = tallygate_rules::Schedule::parse(expression, zone);
    schedule.map(|schedule| Rule::cron(count, schedule)).map_err(|mistake| Error::new(mistake.to_string()))
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

/// Returns the policy that the user named, in our own hands.
///
/// # Errors
///
/// None: that is what the policy of a [`Site`] may have.
#[allow(clippy::unnecessary_wraps, reason = "it stands where the policy of a site does")]
pub fn named(policy: &Policy) -> Result<Cow<'static, Policy>, Rejection> {
    Ok(Cow::Owned(policy.clone()))
}

/// Returns the limiter that the user named, in our own hands.
#[must_use]
pub fn limiter(named: &Limiter) -> Cow<'static, Limiter> {
    Cow::Owned(named.clone())
}

/// Returns the limiter that is installed at this moment.
#[inline]
#[must_use]
pub fn installed() -> Cow<'static, Limiter> {
    Cow::Borrowed(Limiter::installed())
}

/// Returns the position of the rule that denied the call, or `None` if it was no rule. One of an override that is like none
/// of the function's own rules has a position that none of these has, so that no message of theirs is told of it.
#[must_use]
pub fn denying_rule(rejection: &Rejection) -> Option<usize> {
    rejection.rule().map(|rule| rule.written().unwrap_or(usize::MAX))
}

/// Returns whether it was a ban that rejected the call.
#[must_use]
pub fn is_ban(rejection: &Rejection) -> bool {
    rejection.kind() == Kind::Banned
}

/// Makes what the function returns of the rejection, by what the user named.
pub fn reject<T>(rejection: Rejection, reject: impl FnOnce(Rejection) -> T) -> T {
    reject(rejection)
}
