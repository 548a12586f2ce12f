//! A field of a cron expression, and the syntax that all six share.

use std::fmt;

use super::bits::Bits;
use super::error::ScheduleError;

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

/// Sunday as it is written last in a week; [`DayOfWeek`](CronField::DayOfWeek) also takes 0.
const SUNDAY: i8 = 7;

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

    /// What `*` starts from: a week starts on Monday, so `*/2` is Monday, Wednesday, Friday and Sunday.
    const fn star(self) -> i8 {
        match self {
            Self::DayOfWeek => 1,
            _ => self.min(),
        }
    }

    const fn is_day(self) -> bool {
        matches!(self, Self::DayOfMonth | Self::DayOfWeek)
    }

    /// The names of the values 1, 2, 3 and so on.
    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Month => &MONTHS,
            Self::DayOfWeek => &WEEKDAYS,
            _ => &[],
        }
    }

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

    pub(super) fn unknown(self, text: &str) -> ScheduleError {
        ScheduleError::Value { field: self, text: text.to_owned() }
    }

    /// Reads a list of `*`, values, ranges and steps.
    pub(super) fn parse(self, text: &str) -> Result<Bits, ScheduleError> {
        self.entries(text)?.try_fold(Bits::default(), |set, entry| Ok(set | self.parse_entry(entry)?))
    }

    /// The entries of a list, in which a lonely `?` is `*`.
    pub(super) fn entries(self, text: &str) -> Result<impl Iterator<Item = &str>, ScheduleError> {
        let text = if text == "?" && self.is_day() { "*" } else { text };
        if text.contains('?') {
            return Err(ScheduleError::QuestionMark(self));
        }
        Ok(text.split(','))
    }

    /// Reads `*`, a value or a range, with or without a step.
    pub(super) fn parse_entry(self, entry: &str) -> Result<Bits, ScheduleError> {
        let (range, step) = match entry.split_once('/') {
            Some((range, step)) => (range, Some(self.parse_step(step)?)),
            None => (entry, None),
        };
        let (from, to) = match range.split_once('-') {
            Some((from, to)) => self.parse_range(from, to)?,
            None if range == "*" => (self.star(), self.max()),
            None => {
                let value = self.parse_value(range)?;
                (value, if step.is_some() { self.max() } else { value })
            }
        };
        Ok((from..=to).step_by(step.unwrap_or(1)).collect())
    }

    fn parse_range(self, from: &str, to: &str) -> Result<(i8, i8), ScheduleError> {
        let (start, end) = (self.parse_value(from)?, self.parse_value(to)?);
        if start <= end {
            Ok((start, end))
        } else if self == Self::DayOfWeek && start == SUNDAY {
            Ok((0, end))
        } else {
            Err(ScheduleError::Backwards { field: self, from: from.to_owned(), to: to.to_owned() })
        }
    }

    pub(super) fn parse_value(self, text: &str) -> Result<i8, ScheduleError> {
        let named = (1..).zip(self.names()).find(|(_, name)| name.eq_ignore_ascii_case(text));
        named
            .map(|(value, _)| value)
            .or_else(|| parse_number(text))
            .filter(|value| (self.min()..=self.max()).contains(value))
            .ok_or_else(|| self.unknown(text))
    }

    fn parse_step(self, text: &str) -> Result<usize, ScheduleError> {
        let step = parse_number(text).filter(|&step| step > 0);
        step.ok_or_else(|| ScheduleError::Step { field: self, text: text.to_owned() })
    }
}

/// Reads digits and nothing else: no sign, no white space.
pub(super) fn parse_number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
