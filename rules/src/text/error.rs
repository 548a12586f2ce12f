//! The reason why a text is not a rule.

use std::error::Error;
use std::fmt;

#[cfg(feature = "cron")]
use crate::cron::ScheduleError;
use crate::duration::DurationError;

/// The reason why a text is not a [`Rule`](crate::Rule).
///
/// The error quotes the mistaken text, and says what is wrong and what to write. [`source`](Error::source) is the
/// mistake in a duration or in a schedule, if there is one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ParseRuleError {
    text: String,
    fault: TextFault,
    suggestion: Option<String>,
}

/// A mistake in the text of a rule, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TextFault {
    what: String,
    remedy: Option<String>,
    source: Option<ParseSource>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ParseSource {
    Duration(DurationError),
    #[cfg(feature = "cron")]
    Schedule(ScheduleError),
}

impl ParseRuleError {
    pub(super) fn new(text: &str, fault: TextFault, suggestion: Option<String>) -> Self {
        Self { text: text.to_owned(), fault, suggestion }
    }

    /// Returns the rule that was probably meant, in the text form.
    #[must_use]
    pub fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }
}

impl TextFault {
    pub(super) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: Some(remedy.into()), source: None }
    }

    pub(super) fn beside_separator() -> Self {
        Self::new("a rule is missing beside a separator", "write one, like `100 per 1h`, or remove the separator")
    }

    pub(super) fn duration(text: &str, error: DurationError) -> Self {
        let what = format!("the duration `{text}` {}", error.fault());
        let remedy = "write a whole number and one of `ms`, `s`, `m`, `h`, `d`, like `60s`".to_owned();
        Self { what, remedy: Some(remedy), source: Some(ParseSource::Duration(error)) }
    }

    /// The message of a `ScheduleError` already contains a remedy.
    #[cfg(feature = "cron")]
    pub(super) fn schedule(error: ScheduleError) -> Self {
        Self { what: error.to_string(), remedy: None, source: Some(ParseSource::Schedule(error)) }
    }
}

impl fmt::Display for ParseRuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.text.is_empty() {
            f.write_str(&self.fault.what)?;
        } else {
            write!(f, "`{}` is not a rule: {}", self.text, self.fault.what)?;
        }
        match (&self.fault.remedy, &self.suggestion) {
            (None, _) => Ok(()),
            (Some(_), Some(suggestion)) => write!(f, "; did you mean `{suggestion}`?"),
            (Some(remedy), None) => write!(f, "; {remedy}"),
        }
    }
}

crate::__debug_by_display!(ParseRuleError);

impl Error for ParseRuleError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self.fault.source.as_ref()? {
            ParseSource::Duration(error) => Some(error),
            #[cfg(feature = "cron")]
            ParseSource::Schedule(error) => Some(error),
        }
    }
}
