//! Values of the context in subjects and messages.

use super::declared::is_declared;
use super::scope;
use super::values::{Context, Maker};
use crate::error::BackendError;
use crate::observe::{ReportedTexts, log};
use crate::subject::{Subject, SubjectBuilder, SubjectValue};

impl<'a> SubjectBuilder<'a> {
    /// Adds a value of the current [context](crate::context), like `{@name}` in a template.
    ///
    /// If the context lacks the value, calls of the subject fail with an error that names it.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::context::{self, Context};
    /// use tallygate::{Limiter, Subject};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let limiter = Limiter::in_memory();
    /// let subject = async { limiter.subject().text("ip:").context("ip").build() };
    /// let context = Context::new().with("ip", "192.0.2.1");
    /// assert_eq!(context::scope(context, subject).await, Subject::of("ip").and("192.0.2.1"));
    /// # }
    /// ```
    pub fn context(self, name: &str) -> SubjectValue<'a> {
        self.try_value(scope::read(name, str::to_owned).ok_or_else(|| missing(name)))
    }
}

impl SubjectValue<'_> {
    /// Adds a value of the [context](crate::context): see [`SubjectBuilder::context`].
    pub fn context(self, name: &str) -> Self {
        self.text("").context(name)
    }
}

pub(crate) fn push(subject: &mut Subject, name: &str) {
    if scope::read(name, |value| subject.push_value(value)).is_none() {
        subject.refuse(missing(name));
    }
}

pub(crate) fn push_filtered(subject: &mut Subject, name: &str, filter: impl FnOnce(&str) -> String) {
    match scope::read(name, filter) {
        Some(value) => subject.push_value(&value),
        None => subject.refuse(missing(name)),
    }
}

/// Adds the name of a value and the value of the context, filtered, unless it is missing or empty. Returns whether it
/// was added.
pub(crate) fn push_tagged(subject: &mut Subject, name: &str, filter: impl FnOnce(&str) -> String) -> bool {
    let read = |value: &str| (!value.is_empty()).then(|| filter(value));
    let Some(value) = scope::read(name, read).flatten() else { return false };
    subject.push_text(name);
    subject.push_literal(":");
    subject.push_value(&value);
    true
}

/// Makes all calls of a subject fail, because it needs one of these values.
#[cold]
pub(crate) fn refuse_missing(subject: &mut Subject, names: &str) {
    subject.refuse(missing(names));
}

/// Adds a value of the context to a message, filtered. A missing value adds nothing.
pub(crate) fn show(message: &mut String, name: &str, filter: impl FnOnce(&str) -> String) {
    match scope::read(name, filter) {
        Some(value) => message.push_str(&value),
        None => missing_in_message(name),
    }
}

/// Returns the error for a missing value. The call that needs the value reports the error to the log.
#[cold]
pub(super) fn missing(name: &str) -> BackendError {
    let context = Context::current();
    let is_of_pace = context.as_ref().is_some_and(|context| context.maker() == Some(Maker::Pace));
    if context.as_ref().is_some_and(|context| others_have(context, name)) {
        if is_of_pace {
            return BackendError::unidentified(format!(
                "this request lacks `{{@{name}}}`; pace such requests by a text as the key, like `mail`, or find a value with \
                 `Pace::value`"
            ));
        }
        return BackendError::unidentified(format!(
            "this call lacks `{{@{name}}}`, which others have; to limit such calls by something else, write an alternative in \
             the `key`, like `{{@{name}|@ip}}`"
        ));
    }
    BackendError::misuse(match (context, name) {
        (None, _) => format!(
            "`{{@{name}}}` needs a context, and the call has none; add `web::Layer` to the router, or run the call in \
             `context::scope`, and a task that it spawns in `context::carry`"
        ),
        (Some(_), "ip") => "`{@ip}` needs the client's address, which the server does not know; in axum, serve with \
                            `into_make_service_with_connect_info::<SocketAddr>()`; behind a proxy, use `ClientIp::behind`"
            .to_owned(),
        (Some(context), _) => {
            let meant = context.value_meant(name);
            let layer = if is_of_pace { "Pace" } else { "web::Layer" };
            let add = format!("; add it with `{layer}::value`, or with `Context::with` and `context::declare`");
            let remedy = if meant.is_empty() { &add } else { &meant };
            format!("`{{@{name}}}` is a value that the context does not have{remedy}")
        }
    })
}

/// Whether other calls have a value of this name, or of one of these alternatives. The address of the client is missing
/// only if the server does not know it.
fn others_have(context: &Context, name: &str) -> bool {
    let mut names = name.split('|').map(|name| name.trim_start_matches('@').split(':').next().unwrap_or_default());
    let is_had = |name: &str| context.is_looked_for(name) || is_declared(name);
    !names.clone().any(|name| name == "ip") && names.any(is_had)
}

/// Reports to the log why a message lacks a value, once for each value.
#[cold]
fn missing_in_message(name: &str) {
    static REPORTED: ReportedTexts = ReportedTexts::new();
    if REPORTED.is_first(name) {
        log::value_not_shown(&missing(name));
    }
}
