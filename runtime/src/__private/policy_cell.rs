//! The policy of one annotated function.

use std::any::type_name;
use std::fmt::Debug;
use std::time::Duration;

use once_cell::sync::OnceCell;
use tallygate_rules::{Ban, OnOutage, RELEASED_LABEL, Rule, TokenBucket, parse_rules};

use super::admission::{Admission, Admitted};
use super::call::{LimitedCall, check};
use super::values::{NumberText, Texts, Values, render, render_text, subject};
use crate::error::{BackendError, BackendErrorKind, Error};
use crate::limiter::Limiter;
use crate::observe::{Quiet, log};
use crate::policy::{Policy, PolicyBuilder, PolicySettings};
use crate::subject::Subject;

/// The policy of one annotated function, built at its first call, and the text of its key.
///
/// The cell holds everything that a call needs, so that the compiler compiles this code once and not for every
/// function.
#[derive(Debug)]
pub struct PolicyCell {
    name: CellName,
    /// The rules in their text form.
    rules: &'static str,
    /// The positions and labels of the rules that are not on the main subject.
    labels: &'static [(usize, &'static str)],
    ban: Option<Ban>,
    settings: PolicySettings,
    /// The label of the subject that can be paused; `None` for the main one.
    paused: Option<&'static str>,
    key: Texts,
    template: &'static str,
    /// The template of the key of released duplicates, if there are any.
    released: Option<&'static str>,
    policy: OnceCell<&'static dyn CellPolicy>,
}

/// The policy of a cell.
///
/// For every annotated function, the compiler asks whether threads may share its cell. It does not look into a `dyn`, and
/// so does not ask this of each part of a policy again.
trait CellPolicy: Debug + Send + Sync {
    fn policy(&self) -> &Policy;

    /// Decides a call whose key has one value, which is text. It is here, so that the usual call makes no other call
    /// for its policy.
    fn decide_text(&self, key: Texts, text: &str) -> Admission;
}

impl CellPolicy for Policy {
    fn policy(&self) -> &Policy {
        self
    }

    fn decide_text(&self, key: Texts, text: &str) -> Admission {
        let mut subject = Subject::everyone();
        render_text(&mut subject, key, text);
        Admission::of_plain(Limiter::installed(), self, &subject)
    }
}

#[derive(Debug)]
enum CellName {
    Given(&'static str),
    /// The path of the function that contains this item.
    Around(fn() -> &'static str),
    /// The path of the function with this name, beside the function that contains the item.
    Beside(&'static str, fn() -> &'static str),
}

impl PolicyCell {
    /// Returns a cell whose policy has that name. `key` has the texts of `template`, which is the template of the key.
    #[must_use]
    pub const fn named(name: &'static str, rules: &'static str, key: Texts, template: &'static str) -> Self {
        Self::new(CellName::Given(name), rules, key, template)
    }

    /// Returns a cell whose policy is named after its function, which contains the item `T`.
    #[must_use]
    pub const fn around<T>(rules: &'static str, key: Texts, template: &'static str) -> Self {
        Self::new(CellName::Around(type_name::<T>), rules, key, template)
    }

    /// Returns a cell for a companion, which contains the item `T`. The policy is named after the function of that
    /// name.
    #[must_use]
    pub const fn beside<T>(function: &'static str, rules: &'static str, key: Texts, template: &'static str) -> Self {
        Self::new(CellName::Beside(function, type_name::<T>), rules, key, template)
    }

    const fn new(name: CellName, rules: &'static str, key: Texts, template: &'static str) -> Self {
        Self {
            name,
            rules,
            labels: &[],
            ban: None,
            settings: PolicySettings::NONE,
            paused: None,
            key,
            template,
            released: None,
            policy: OnceCell::new(),
        }
    }

    /// Sets the labels of other subjects, with the positions of the rules that count them.
    #[must_use]
    pub const fn on(mut self, labels: &'static [(usize, &'static str)]) -> Self {
        self.labels = labels;
        self
    }

    /// Sets the template of the key of released duplicates, whose label is another text.
    #[must_use]
    pub const fn released_key(mut self, template: &'static str) -> Self {
        self.released = Some(template);
        self
    }

    /// Sets the ban.
    #[must_use]
    pub const fn ban(mut self, ban: Ban) -> Self {
        self.ban = Some(ban);
        self
    }

    /// Sets how calls are decided while Redis is away.
    #[must_use]
    pub const fn on_outage(mut self, on_outage: OnOutage) -> Self {
        self.settings.on_outage = Some(on_outage);
        self
    }

    /// Sets the longest time that a decision takes.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadline = Some(deadline);
        self
    }

    /// Sets the share of a limit from which a subject is near it.
    #[must_use]
    pub const fn warn_at(mut self, share: f64) -> Self {
        self.settings.warn_at = Some(share);
        self
    }

    /// Sets how long calls are taken ahead.
    #[must_use]
    pub const fn prefetch(mut self, ahead: Duration) -> Self {
        self.settings.prefetch = Some(ahead);
        self
    }

    /// Lets the main subject be paused.
    #[must_use]
    pub const fn pausable(mut self) -> Self {
        self.settings = self.settings.pausable();
        self
    }

    /// Lets the subject with this label be paused in place of the main one.
    #[must_use]
    pub const fn pausable_on(mut self, label: &'static str) -> Self {
        self.paused = Some(label);
        self.pausable()
    }

    /// Lets the main subject be paused for at most this time.
    #[must_use]
    pub const fn longest_pause(mut self, longest: Duration) -> Self {
        self.settings.longest_pause = Some(longest);
        self
    }

    /// Decides a call without options by the installed limiter.
    #[inline]
    #[track_caller]
    pub fn enter(&'static self, values: impl Values) -> Admission {
        if let Some(text) = values.text(&mut NumberText::new()) {
            return self.enter_with_text(text);
        }
        let mut subject = Subject::everyone();
        render(&mut subject, self.key, values);
        self.decide(&subject)
    }

    /// Starts a call with options.
    #[inline]
    #[track_caller]
    pub fn call(&'static self, values: impl Values) -> LimitedCall<'static> {
        LimitedCall::new(self.policy(), subject(self.key, values))
    }

    /// Builds the policy before the first call, so that the process knows it.
    #[cfg(feature = "config")]
    pub fn announce(&'static self) {
        self.policy();
    }

    /// Decides a call without options of a function that is not async.
    #[inline]
    #[track_caller]
    #[allow(clippy::missing_errors_doc, reason = "only what the attribute writes calls it")]
    pub fn blocking_enter(&'static self, values: impl Values) -> Admitted {
        check(self.policy(), &subject(self.key, values), None).blocking_admit().map(Some)
    }

    /// Decides a call whose key has one value, which is text or a number. The usual call is one function, which is
    /// compiled once, and not for every annotated function.
    #[inline]
    fn enter_with_text(&'static self, text: &str) -> Admission {
        match self.policy.get() {
            Some(policy) => policy.decide_text(self.key, text),
            None => self.enter_first(text),
        }
    }

    /// Decides the first call. A function of its own, so that no annotated function contains the building of a policy.
    #[cold]
    fn enter_first(&'static self, text: &str) -> Admission {
        self.built().decide_text(self.key, text)
    }

    fn decide(&'static self, subject: &Subject) -> Admission {
        Admission::of_plain(Limiter::installed(), self.policy(), subject)
    }

    /// Returns the policy. The first call builds it.
    #[inline]
    pub(super) fn policy(&'static self) -> &'static Policy {
        self.kept().policy()
    }

    #[inline]
    fn kept(&'static self) -> &'static dyn CellPolicy {
        *self.policy.get().unwrap_or_else(|| self.built())
    }

    #[cold]
    fn built(&'static self) -> &'static &'static dyn CellPolicy {
        let _quiet = Quiet::begin();
        self.policy.get_or_init(|| {
            let name = self.name.text();
            Box::leak(Box::new(self.build(name.clone()).unwrap_or_else(|mistake| closed(name, &mistake))))
        })
    }

    fn build(&self, name: String) -> Result<Policy, BackendError> {
        let rules = parse_rules(self.rules).map_err(|mistakes| {
            let mistakes: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
            BackendError::misuse(format!("policy `{name}`: {}", mistakes.join("; ")))
        })?;
        let label = |position| self.labels.iter().find(|(labelled, _)| *labelled == position).map(|(_, label)| *label);
        let builder =
            rules.into_iter().enumerate().fold(Policy::builder(name), |builder, (position, rule)| {
                match label(position) {
                    Some(label) => builder.rule_on(label, rule),
                    None => builder.rule(rule),
                }
            });
        let builder = self.ban.into_iter().fold(builder, PolicyBuilder::ban).key(self.template);
        // The label of another subject is its key, except that of released duplicates.
        let key_of = |label: &'static str| self.released.filter(|_| label == RELEASED_LABEL).unwrap_or(label);
        let builder = self.labels.iter().fold(builder, |builder, (_, label)| builder.key_on(*label, key_of(label)));
        let builder = self.paused.into_iter().fold(builder.with_settings(self.settings), PolicyBuilder::pausable_on);
        builder
            .build_static()
            .map_err(|error: Error| BackendError::with_source(BackendErrorKind::Misuse, error.to_string(), error))
    }
}

impl CellName {
    fn text(&self) -> String {
        match self {
            Self::Given(name) => (*name).to_owned(),
            Self::Around(item) => path_of(item()).join("."),
            Self::Beside(function, item) => {
                let mut path = path_of(item());
                path.pop();
                path.push(function);
                path.join(".")
            }
        }
    }
}

/// Returns a policy that admits nothing, in place of a refused one.
///
/// The attribute has validated the policy with the same code, so only a mistake of this library leads here. The
/// function is then closed rather than unlimited.
fn closed(name: String, mistake: &BackendError) -> Policy {
    log::misuse(&name, mistake);
    // No call fits into a bucket without capacity, even if the call sets its count.
    let nothing = Rule::from_bucket(0, TokenBucket::new(Duration::from_secs(1)).with_capacity(0));
    let settings = PolicySettings { on_outage: Some(OnOutage::Deny), ..PolicySettings::NONE };
    Policy::of_checked(name, vec![(None, nothing)], settings)
}

/// Returns the path of the function that contains an item: `crate`, `module`, `Type`, `function`.
fn path_of(item: &str) -> Vec<&str> {
    let mut path: Vec<_> = item.split("::").filter(|segment| *segment != "{{closure}}").collect();
    path.pop();
    path
}

/// Announces the policy of a function to the program, so that a file can be compared with it before its first call.
#[cfg(feature = "config")]
#[doc(hidden)]
#[macro_export]
macro_rules! __announce {
    ($cell:ident) => {
        $crate::__private::inventory::submit! {
            $crate::__private::Announced(|| $cell.announce())
        }
    };
}

/// Announces nothing: only files are compared with policies.
#[cfg(not(feature = "config"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __announce {
    ($cell:ident) => {};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rules_that_cannot_be_read_or_are_refused_close_the_function() {
        static UNREADABLE: PolicyCell = PolicyCell::named("unreadable", "1 per 1s, 1 per fortnight", &[], "");
        static REFUSED: PolicyCell = PolicyCell::named("refused", "0 per 1s", &[], "");
        for (cell, name) in [(&UNREADABLE, "unreadable"), (&REFUSED, "refused")] {
            let rejection = cell.enter(()).decided().await.unwrap_err();
            assert_eq!((rejection.policy(), rejection.retry_after()), (name, None));
            assert!(cell.call(()).counts([9, 9]).enter().decided().await.is_err());
            assert!(cell.blocking_enter(()).is_err());
            assert!(!cell.call(()).check().peek().await.unwrap().is_allowed());
            assert_eq!(cell.policy().on_outage(), Some(OnOutage::Deny), "nobody admits it in an outage");
        }
    }
}
