//! The only thing that expansions of the attribute call. Nothing here is part of the public interface.

mod placeholder;

use std::any::type_name;
use std::borrow::Borrow;

use once_cell::sync::OnceCell;
pub use tallygate_rules::{Rule, TokenBucket};

pub use self::placeholder::{
    Value, hash, lower, push_count, push_literal, push_per, push_retry_after, push_rule, push_shown, push_string,
    push_text, push_value, subnet, trim,
};
use crate::{Error, Limiter, Outage, Permit, Policy, PolicyBuilder, Rejection, Subject};

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

    /// Returns the policy, which is built at the first call.
    ///
    /// # Errors
    ///
    /// The policy is refused. The attribute has validated it with the same code, so this is for a mistake of ours: it
    /// closes the function rather than leaving it unlimited.
    pub fn policy(
        &self,
        name: fn() -> String,
        rules: fn(PolicyBuilder) -> Result<PolicyBuilder, Error>,
    ) -> Result<&Policy, Rejection> {
        let built = self.0.get_or_init(|| {
            let name = name();
            let built = rules(Policy::builder(name.clone())).and_then(PolicyBuilder::build);
            built.map_err(|mistake| Rejection::unavailable(name, Outage::new(mistake.to_string())))
        });
        built.as_ref().map_err(Clone::clone)
    }
}

/// Returns the path of the function that `_marker`, an item of its body, stands in: `crate.module.Type.function`.
pub fn path_of<T>(_marker: T) -> String {
    let path: Vec<_> = type_name::<T>().split("::").filter(|segment| *segment != "{{closure}}").collect();
    let function = path.split_last().map_or(&[][..], |(_marker, function)| function);
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
pub fn with_counts<const N: usize>(policy: Result<&Policy, Rejection>, counts: [u64; N]) -> Result<Policy, Rejection> {
    policy.map(|policy| policy.with_counts(counts))
}

/// Starts the subject of a call.
#[must_use]
pub fn subject() -> Subject {
    Subject::everyone()
}

/// Returns the limiter that the user named, in our own hands.
#[must_use]
pub fn limiter(named: &Limiter) -> Limiter {
    named.clone()
}

/// Decides one call of an annotated function.
///
/// # Errors
///
/// Returns why the function must not run.
pub async fn enter(
    policy: Result<impl Borrow<Policy> + Send, Rejection>,
    limiter: impl Borrow<Limiter> + Send,
    subject: Subject,
) -> Result<Permit, Rejection> {
    let policy = policy?;
    let policy = policy.borrow();
    let decided = limiter.borrow().check(policy, &subject).await;
    decided.map_err(|outage| Rejection::unavailable(policy.name().to_owned(), outage))?.permit()
}

/// Returns the position of the rule that denied the call, or `None` if it was no rule. One of an override that is like none
/// of the function's own rules has a position that none of these has, so that no message of theirs is told of it.
#[must_use]
pub fn denying_rule(rejection: &Rejection) -> Option<usize> {
    rejection.rule().map(|rule| rule.written().unwrap_or(usize::MAX))
}

/// Makes what the function returns of the rejection, by what the user named.
pub fn reject<T>(rejection: Rejection, reject: impl FnOnce(Rejection) -> T) -> T {
    reject(rejection)
}
