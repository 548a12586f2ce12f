//! The mistakes in a cron expression or in the name of a time zone.

use std::fmt;

use crate::cron::field::CronField;

/// The reason why a text is not a [`Schedule`](crate::Schedule).
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The expression does not have six fields.
    Fields {
        /// The whole expression.
        expression: String,
        /// The number of its fields.
        found: usize,
    },
    /// The expression starts with `@` but is not a macro.
    Macro(String),
    /// A field holds a value that is unknown or out of its range.
    Value {
        /// The field.
        field: CronField,
        /// The value.
        text: String,
    },
    /// A range ends before it starts.
    Backwards {
        /// The field.
        field: CronField,
        /// The start of the range.
        from: String,
        /// The end of the range.
        to: String,
    },
    /// The text after `/` is not a step.
    Step {
        /// The field.
        field: CronField,
        /// The text after the `/`.
        text: String,
    },
    /// The `?` is not alone in its field, or the field is not a day.
    QuestionMark(CronField),
    /// No day of the calendar matches, like 30 February.
    Never(String),
    /// The time zone is unknown.
    Zone {
        /// The name that was given.
        name: String,
        /// A similar name that exists.
        similar: Option<String>,
    },
}

impl ScheduleError {
    /// Returns whether the mistake is in the time zone and not in the expression.
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
                "the cron expression has the unknown macro `{text}`; write `@yearly`, `@annually`, `@monthly`, \
                 `@weekly`, `@daily`, `@midnight`, `@hourly`, or six fields"
            ),
            Self::Value { field, text } if text.is_empty() => {
                write!(f, "the cron expression lacks a value in its {field} field; {}", field.remedy())
            }
            Self::Value { field, text } => {
                write!(f, "the cron expression has the unknown value `{text}` in its {field} field; {}", field.remedy())
            }
            Self::Backwards { field, from, to } => {
                write!(
                    f,
                    "the cron expression has the range `{from}-{to}` in its {field} field, which ends before it "
                )?;
                write!(f, "starts; write `{from}-{},{}-{to}`", field.max(), field.min())
            }
            Self::Step { field, text } => write!(
                f,
                "the cron expression has the step `{text}` in its {field} field; write a whole number of at least 1, \
                 like `*/5`"
            ),
            Self::QuestionMark(field) => write!(
                f,
                "the cron expression has `?` in its {field} field; it may only stand alone in a day field, so write `*`"
            ),
            Self::Never(text) => write!(
                f,
                "the cron expression never ticks: no day matches month, day-of-month and day-of-week of `{text}` at \
                 once; change one"
            ),
            Self::Zone { name, similar: Some(similar) } => {
                write!(f, "the time zone `{name}` is unknown; did you mean `{similar}`?")
            }
            Self::Zone { name, similar: None } => {
                write!(f, "the time zone `{name}` is unknown; write an IANA name, like `Asia/Shanghai` or `UTC`")
            }
        }
    }
}

fn write_fields(f: &mut fmt::Formatter<'_>, expression: &str, found: usize) -> fmt::Result {
    f.write_str("the cron expression ")?;
    match found {
        0 => write!(f, "is empty; {SIX_FIELDS}"),
        5 => write!(f, "has 5 fields, but the first of six is the second; write `0 {expression}`"),
        7 => write!(f, "has 7 fields, but there is none for the year; {SIX_FIELDS}"),
        1 => write!(f, "has 1 field; {SIX_FIELDS}"),
        _ => write!(f, "has {found} fields; {SIX_FIELDS}"),
    }
}

impl std::error::Error for ScheduleError {}

crate::__debug_by_display!(ScheduleError);
