//! The errors: a setup that cannot be used, and a backend that cannot decide.

mod backend;
mod config;
mod setting;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

#[cfg(feature = "cron")]
use tallygate_rules::ScheduleError;
use tallygate_rules::{RuleError, is_blank};

pub use self::backend::{BackendError, BackendErrorKind};
pub(crate) use self::config::Place;
pub use self::config::{ConfigError, Mistake};
pub use self::setting::{NamedSetting, Setting};

/// A limiter or a policy that cannot be used as it was set up.
///
/// The text names the setting and the remedy. It includes the text of the [`source`](StdError::source), and never a
/// password: of a URL it shows host and port at most.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tallygate::{ErrorKind, Policy, Rule};
///
/// let error = Policy::builder("sms").rule(Rule::sliding_window(0, Duration::from_secs(60))).build().unwrap_err();
/// assert_eq!(error.to_string(), "policy `sms`: rule 0: `count` must be at least 1, like `count = 10`");
/// assert_eq!(error.kind(), ErrorKind::Policy);
/// assert_eq!(error.rule_errors()[0].position(), Some(0));
/// ```
#[derive(Clone)]
pub struct Error {
    // Shared, so that a `Result` is small where there is no error, as is common.
    inner: Arc<ErrorInner>,
}

struct ErrorInner {
    kind: ErrorKind,
    text: String,
    named: Option<NamedSetting>,
    rule_errors: Vec<RuleError>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting of a limiter, its URL or an override cannot be used.
    Setting,
    /// A limiter is installed already.
    AlreadyInstalled,
    /// A policy, or the rules of an override, are mistaken: see [`Error::rule_errors`].
    Policy,
    /// A cron expression or a time zone is mistaken. The source is a `ScheduleError`.
    Schedule,
    /// A file of policies is refused, or cannot be read. The source is a `ConfigError` with all mistakes, or the error of the
    /// system.
    Config,
    /// The backend cannot be reached, or answered with an error. The source is a [`BackendError`].
    Backend,
}

impl ErrorInner {
    fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), named: None, rule_errors: Vec::new(), source: None }
    }

    fn caused_by(kind: ErrorKind, source: impl StdError + Send + Sync + 'static) -> Self {
        let own = Self::new(kind, source.to_string());
        Self { source: Some(Box::new(source)), ..own }
    }
}

impl Error {
    /// Returns the error for a setting that cannot be used.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        ErrorInner::new(ErrorKind::Setting, text).into()
    }

    /// Returns the error for a setting that cannot be used, with the text before and after its name.
    pub(crate) fn of_setting(
        setting: Setting,
        text: impl Into<String>,
        before: impl Into<String>,
        after: &'static str,
    ) -> Self {
        let named = Some(NamedSetting { setting, before: before.into(), after });
        ErrorInner { named, ..ErrorInner::new(ErrorKind::Setting, text) }.into()
    }

    pub(crate) fn already_installed() -> Self {
        let text = "a limiter is installed already; call `install` once, at start-up";
        ErrorInner::new(ErrorKind::AlreadyInstalled, text).into()
    }

    pub(crate) fn of_file(path: &std::path::Path, source: impl StdError + Send + Sync + 'static) -> Self {
        let text = format!("the file `{}` cannot be used: {source}", path.display());
        ErrorInner { text, ..ErrorInner::caused_by(ErrorKind::Config, source) }.into()
    }

    /// Returns the error with all mistakes of a policy: those in its texts, and those in its rules.
    pub(crate) fn policy(policy: &str, mut texts: Vec<String>, mistakes: &[RuleError]) -> Self {
        if is_blank(policy) {
            texts.insert(0, "`name` must not be empty, like `Policy::builder(\"sms\")`".to_owned());
        }
        texts.extend(mistakes.iter().map(|mistake| match mistake.position() {
            Some(position) => format!("rule {position}: {mistake}"),
            None => mistake.to_string(),
        }));
        let name = if is_blank(policy) { String::new() } else { format!(" `{policy}`") };
        let text = format!("policy{name}: {}", texts.join("; "));
        ErrorInner { rule_errors: mistakes.to_vec(), ..ErrorInner::new(ErrorKind::Policy, text) }.into()
    }

    /// Returns the error for a backend that the URL leads to, and that cannot be used.
    pub(crate) fn of_url(error: BackendError) -> Self {
        let before = |(before, setting)| NamedSetting { setting, before: format!("`url`: {before}"), after: "" };
        let (text, named) = (format!("`url`: {error}"), error.setting().map(before));
        ErrorInner { text, named, ..ErrorInner::caused_by(ErrorKind::Backend, error) }.into()
    }

    /// Returns what the error is about.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Returns the setting that the text names, for a program whose settings have names of their own, like the options of a command
    /// line. `None` is any other error: its text can be shown as it is.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::{Limiter, Setting};
    ///
    /// let error = Limiter::builder().prefix("").build_in_memory().unwrap_err();
    /// assert_eq!(error.to_string(), "`prefix` must not be empty, like `prefix(\"shop\")`");
    ///
    /// let named = error.named_setting().unwrap();
    /// assert_eq!((named.setting(), named.after()), (Setting::Prefix, " must not be empty"));
    /// ```
    #[must_use]
    pub fn named_setting(&self) -> Option<&NamedSetting> {
        self.inner.named.as_ref()
    }

    /// Returns every mistake in the rules, in the order of the rules; nothing if the error is about something else.
    #[must_use]
    pub fn rule_errors(&self) -> &[RuleError] {
        &self.inner.rule_errors
    }
}

impl From<ErrorInner> for Error {
    fn from(inner: ErrorInner) -> Self {
        Self { inner: Arc::new(inner) }
    }
}

/// Two errors are equal if their texts are.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        self.inner.text == other.inner.text
    }
}

impl Eq for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.text)
    }
}

tallygate_rules::__debug_by_display!(Error);

impl StdError for Error {
    /// Returns the first of the [`RuleError`]s, the `ScheduleError`, the `ConfigError` or the [`BackendError`].
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let mistake = self.inner.rule_errors.first().map(|mistake| mistake as _);
        mistake.or_else(|| self.inner.source.as_deref().map(|source| source as _))
    }
}

#[cfg(feature = "cron")]
impl From<ScheduleError> for Error {
    fn from(error: ScheduleError) -> Self {
        ErrorInner::caused_by(ErrorKind::Schedule, error).into()
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        ErrorInner::caused_by(ErrorKind::Config, error).into()
    }
}

impl From<BackendError> for Error {
    fn from(error: BackendError) -> Self {
        ErrorInner::caused_by(ErrorKind::Backend, error).into()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::Policy;
    use tallygate_rules::Rule;

    #[test]
    fn an_error_keeps_every_mistake_in_the_rules() {
        let minute = Duration::from_secs(60);
        let rules = [Rule::sliding_window(0, minute), Rule::sliding_window(1, Duration::ZERO)];
        let error = Policy::builder("sms").rules(rules).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Policy);
        assert_eq!(error.rule_errors().iter().map(RuleError::position).collect::<Vec<_>>(), [Some(0), Some(1)]);
        assert_eq!(error.source().unwrap().downcast_ref(), error.rule_errors().first());
        assert!(error.rule_errors().iter().all(|mistake| error.to_string().contains(&mistake.to_string())));
    }

    #[test]
    fn an_error_of_the_backend_is_the_source_of_an_error() {
        let cause =
            BackendError::with_source(BackendErrorKind::Away, "redis: refused", std::io::Error::other("refused"));
        let error = Error::from(cause);
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Backend, "redis: refused"));
        let source = error.source().unwrap();
        assert!(source.is::<BackendError>() && source.source().unwrap().is::<std::io::Error>());
        assert!(error.rule_errors().is_empty());
    }

    #[cfg(feature = "cron")]
    #[test]
    fn a_mistaken_schedule_is_the_source_of_an_error() {
        fn build() -> Result<Policy, Error> {
            let schedule = tallygate_rules::Schedule::parse("0 0 6 * * *", "Mars/Olympus")?;
            Policy::builder("sms").rule(Rule::cron(1, schedule)).build()
        }
        let error = build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Schedule);
        assert!(error.source().unwrap().is::<ScheduleError>());
    }

    #[test]
    fn an_error_is_as_small_as_a_pointer_and_main_prints_its_text() {
        assert_eq!(size_of::<Option<Error>>(), size_of::<usize>());
        let error = Error::new("`prefix` must not be empty");
        assert_eq!(format!("{error:?}"), "`prefix` must not be empty");
    }
}
