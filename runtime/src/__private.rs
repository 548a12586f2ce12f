//! The only thing that expansions of the attribute call. Nothing here is part of the public interface.

use std::any::type_name;
use std::borrow::Borrow;
use std::fmt::Display;

use once_cell::sync::OnceCell;
pub use tallygate_rules::Rule;

use crate::{Error, Limiter, Outage, Permit, Policy, Rejection, Subject};

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
    pub fn policy(&self, name: impl FnOnce() -> String, rules: &[Rule]) -> Result<&Policy, Rejection> {
        let built = self.0.get_or_init(|| build(name(), rules));
        built.as_ref().map_err(Clone::clone)
    }
}

fn build(name: String, rules: &[Rule]) -> Result<Policy, Rejection> {
    Policy::builder(name.clone())
        .rules(rules.iter().cloned())
        .build()
        .map_err(|mistake: Error| Rejection::unavailable(name, Outage::new(mistake.to_string())))
}

/// Returns the path of the function that `_marker`, an item of its body, stands in: `crate.module.Type.function`.
pub fn path_of<T>(_marker: T) -> String {
    let path: Vec<_> = type_name::<T>().split("::").filter(|segment| *segment != "{{closure}}").collect();
    let function = path.split_last().map_or(&[][..], |(_marker, function)| function);
    function.join(".")
}

/// Starts the subject of a call.
#[must_use]
pub fn subject() -> Subject {
    Subject::everyone()
}

/// Adds text of the template, which the attribute has escaped.
pub fn push_literal(subject: &mut Subject, text: &'static str) {
    subject.push_literal(text);
}

/// A value that a placeholder can show.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be shown in a key",
    label = "a placeholder's value is `Display`",
    note = "name a field or a method of it that is, like `{{user.id}}` or `{{user.name()}}`"
)]
pub trait Value: Display {}

#[diagnostic::do_not_recommend]
impl<T: Display + ?Sized> Value for T {}

/// Adds the value of a placeholder.
pub fn push_value(subject: &mut Subject, value: &(impl Value + ?Sized)) {
    subject.push_value(value);
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
    policy: Result<&'static Policy, Rejection>,
    limiter: impl Borrow<Limiter> + Send,
    subject: Subject,
) -> Result<Permit, Rejection> {
    let policy = policy?;
    let decided = limiter.borrow().check(policy, &subject).await;
    decided.map_err(|outage| Rejection::unavailable(policy.name().to_owned(), outage))?.permit()
}
