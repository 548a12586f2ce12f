//! The fields of a cron expression: their ranges, and the syntax that all of them share.

use std::fmt;

use crate::cron::bits::Bits;
use crate::cron::error::ScheduleError;

/// A field of a cron expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CronField {
    /// The second of the minute, 0 to 59.
    Second,
    /// The minute of the hour, 0 to 59.
    Minute,
    /// The hour of the day, 0 to 23.
    Hour,
    /// The day of the month, 1 to 31.
    DayOfMonth,
    /// The month, 1 to 12 or JAN to DEC.
    Month,
    /// The day of the week, 0 to 7 or MON to SUN; both 0 and 7 are Sunday.
    DayOfWeek,
}

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];

/// Sunday as the last day of a week; [`DayOfWeek`](CronField::DayOfWeek) also accepts 0.
pub(super) const SUNDAY: i8 = 7;

impl fmt::Display for CronField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day-of-month",
            Self::Month => "month",
            Self::DayOfWeek => "day-of-week",
        })
    }
}

impl CronField {
    pub(super) const fn min(self) -> i8 {
        match self {
            Self::Second | Self::Minute | Self::Hour | Self::DayOfWeek => 0,
            Self::DayOfMonth | Self::Month => 1,
        }
    }

    pub(super) const fn max(self) -> i8 {
        match self {
            Self::Second | Self::Minute => 59,
            Self::Hour => 23,
            Self::DayOfMonth => 31,
            Self::Month => 12,
            Self::DayOfWeek => SUNDAY,
        }
    }

    /// The first value of `*`. A week starts on Monday, so `*/2` is Monday, Wednesday, Friday and Sunday.
    pub(super) const fn star(self) -> i8 {
        match self {
            Self::DayOfWeek => 1,
            _ => self.min(),
        }
    }

    pub(super) const fn is_day(self) -> bool {
        matches!(self, Self::DayOfMonth | Self::DayOfWeek)
    }

    /// The names of the values 1, 2, 3 and so on.
    pub(super) const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Month => &MONTHS,
            Self::DayOfWeek => &WEEKDAYS,
            _ => &[],
        }
    }

    /// What to write instead of a mistaken value.
    pub(super) const fn remedy(self) -> &'static str {
        match self {
            Self::Second | Self::Minute => "write 0 to 59, like `30`, `0-10`, `*/5` or `0,30`",
            Self::Hour => "write 0 to 23, like `6`, `9-17`, `*/2` or `6,18`",
            Self::DayOfMonth => {
                "write 1 to 31, like `1`, `1-7`, `*/2` or `1,15`, or `L`, `L-1` to `L-30`, `LW`, `1W` to `31W`"
            }
            Self::Month => "write 1 to 12 or JAN to DEC, like `1`, `JUN-AUG`, `*/3` or `1,7`",
            Self::DayOfWeek => {
                "write 0 to 7 or MON to SUN, like `5`, `MON-FRI` or `SAT,SUN`, or `FRIL`, `FRI#1` to `FRI#5`"
            }
        }
    }
}

pub(super) fn unknown(field: CronField, text: &str) -> ScheduleError {
    ScheduleError::Value { field, text: text.to_owned() }
}

/// Reads a list of `*`, values, ranges and steps.
pub(super) fn parse_list(field: CronField, text: &str) -> Result<Bits, ScheduleError> {
    entries(field, text)?.try_fold(Bits::default(), |set, entry| Ok(set | parse_entry(field, entry)?))
}

/// Returns the entries of a list. `?` alone is `*`.
pub(super) fn entries(field: CronField, text: &str) -> Result<impl Iterator<Item = &str>, ScheduleError> {
    let text = if text == "?" && field.is_day() { "*" } else { text };
    if text.contains('?') {
        return Err(ScheduleError::QuestionMark(field));
    }
    Ok(text.split(','))
}

/// Reads `*`, a value or a range, with or without a step.
pub(super) fn parse_entry(field: CronField, entry: &str) -> Result<Bits, ScheduleError> {
    let (range, step) = match entry.split_once('/') {
        Some((range, step)) => (range, Some(parse_step(field, step)?)),
        None => (entry, None),
    };
    let (from, to) = match range.split_once('-') {
        Some((from, to)) => parse_range(field, from, to)?,
        None if range == "*" => (field.star(), field.max()),
        None => {
            let value = parse_value(field, range)?;
            (value, if step.is_some() { field.max() } else { value })
        }
    };
    Ok((from..=to).step_by(step.unwrap_or(1)).collect())
}

fn parse_range(field: CronField, from: &str, to: &str) -> Result<(i8, i8), ScheduleError> {
    let start = parse_value(field, from)?;
    let end = parse_value(field, to)?;
    if start <= end {
        Ok((start, end))
    } else if field == CronField::DayOfWeek && start == SUNDAY {
        Ok((0, end))
    } else {
        Err(ScheduleError::Backwards { field, from: from.to_owned(), to: to.to_owned() })
    }
}

pub(super) fn parse_value(field: CronField, text: &str) -> Result<i8, ScheduleError> {
    let named = (1..).zip(field.names()).find(|(_, name)| name.eq_ignore_ascii_case(text));
    named
        .map(|(value, _)| value)
        .or_else(|| parse_number(text))
        .filter(|value| (field.min()..=field.max()).contains(value))
        .ok_or_else(|| unknown(field, text))
}

fn parse_step(field: CronField, text: &str) -> Result<usize, ScheduleError> {
    let step = parse_number(text).filter(|&step| step > 0);
    step.ok_or_else(|| ScheduleError::Step { field, text: text.to_owned() })
}

/// Reads digits and nothing else: no sign, no white space.
pub(super) fn parse_number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
