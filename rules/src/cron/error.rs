//! What can be wrong with a cron expression or a time zone.

use std::fmt;

use super::field::CronField;

/// Why a text is no [`Schedule`](crate::Schedule).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The expression has another number of fields than six.
    Fields {
        /// The whole expression.
        expression: String,
        /// How many fields it has.
        found: usize,
    },
    /// The expression starts with `@`, but is no macro.
    Macro(String),
    /// A field holds something that it does not know, or that is out of its range.
    Value {
        /// The field.
        field: CronField,
        /// What it holds.
        text: String,
    },
    /// A range ends before it starts.
    Backwards {
        /// The field.
        field: CronField,
        /// The start of the range.
        from: String,
        /// Its end.
        to: String,
    },
    /// What follows `/` is no step.
    Step {
        /// The field.
        field: CronField,
        /// What follows the `/`.
        text: String,
    },
    /// `?` stands in a field of no day, or in company.
    QuestionMark(CronField),
    /// No day of the calendar matches, like 30 February.
    Never(String),
    /// The time zone is unknown.
    Zone {
        /// What was given as its name.
        name: String,
        /// A name that resembles it.
        similar: Option<String>,
    },
}

impl ScheduleError {
    /// Returns whether the time zone is at fault, and not the expression.
    #[must_use]
    pub fn is_zone(&self) -> bool {
        matches!(self, Self::Zone { .. })
    }
}

const SIX_FIELDS: &str = "write six: second minute hour day-of-month month day-of-week, like `0 0 6 * * *`";

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fields { expression, found } => write_fields(f, expression, *found),
            Self::Macro(text) => write!(
                f,
                "`cron` has the unknown macro `{text}`; write `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, \
                 `@midnight`, `@hourly`, or six fields"
            ),
            Self::Value { field, text } if text.is_empty() => {
                write!(f, "`cron` lacks a value in its {field} field; {}", field.remedy())
            }
            Self::Value { field, text } => {
                write!(f, "`cron` has the unknown value `{text}` in its {field} field; {}", field.remedy())
            }
            Self::Backwards { field, from, to } => {
                write!(
                    f,
                    "`cron` has the range `{from}-{to}` in its {field} field, which ends before it starts; write "
                )?;
                write!(f, "`{from}-{},{}-{to}`", field.max(), field.min())
            }
            Self::Step { field, text } => write!(
                f,
                "`cron` has the step `{text}` in its {field} field; write a whole number of at least 1, like `*/5`"
            ),
            Self::QuestionMark(field) => {
                write!(f, "`cron` has `?` in its {field} field; it may only stand alone in a day field, so write `*`")
            }
            Self::Never(text) => write!(
                f,
                "`cron` never ticks: no day matches month, day-of-month and day-of-week of `{text}` at once; change one"
            ),
            Self::Zone { name, similar: Some(similar) } => {
                write!(f, "`tz` is the unknown time zone `{name}`; did you mean `{similar}`?")
            }
            Self::Zone { name, similar: None } => {
                write!(f, "`tz` is the unknown time zone `{name}`; write an IANA name, like `Asia/Shanghai` or `UTC`")
            }
        }
    }
}

fn write_fields(f: &mut fmt::Formatter<'_>, expression: &str, found: usize) -> fmt::Result {
    match found {
        0 => write!(f, "`cron` is empty; {SIX_FIELDS}"),
        5 => write!(f, "`cron` has 5 fields, but the first of six is the second; write `0 {expression}`"),
        7 => write!(f, "`cron` has 7 fields, but there is none for the year; {SIX_FIELDS}"),
        1 => write!(f, "`cron` has 1 field; {SIX_FIELDS}"),
        _ => write!(f, "`cron` has {found} fields; {SIX_FIELDS}"),
    }
}

impl std::error::Error for ScheduleError {}
